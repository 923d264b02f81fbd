/* image_jpeg.c - JPEG, by libjpeg-turbo. The grey of a colour image is its
 * brightness, as the file has it. Photographs are turned upright. */
#include "io/import/images/image_exif.h"
#include "io/import/images/image_file_parts.h"

#include <string.h>
#include <turbojpeg.h>

static const int flags =
    TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS | TJFLAG_ACCURATEDCT;

static bool run(bm_line_image *out, const bm_image_source *s, tjhandle jpeg,
                int how)
{
    return tjDecompress2(jpeg, s->bytes, s->size, out->grey, (int)out->width, 0,
                         (int)out->height, TJPF_GRAY, how) == 0;
}

/* Surplus bytes between the pixels and the end do no harm: of pixels that are
 * missing libjpeg-turbo warns before. */
static bool decompress(bm_line_image *out, const bm_image_source *s,
                       tjhandle jpeg)
{
    static const char surplus[] = "extraneous bytes before marker 0xd9";

    if (run(out, s, jpeg, flags))
        return true;
    if (strstr(tjGetErrorStr2(jpeg), surplus) == NULL)
        return false;
    return run(out, s, jpeg, flags & ~TJFLAG_STOPONWARNING) ||
           strstr(tjGetErrorStr2(jpeg), surplus) != NULL;
}

static bm_status decode(bm_line_image *out, const bm_image_source *s,
                        tjhandle jpeg, bm_problem *problem)
{
    int width = 0, height = 0, sampling = 0, colours = 0;

    if (tjDecompressHeader3(jpeg, s->bytes, s->size, &width, &height, &sampling,
                            &colours) != 0) {
        bm_image_damaged(s, tjGetErrorStr2(jpeg), problem);
        return BM_OK;
    }
    if (width < 1 || height < 1) {
        bm_image_damaged(s, "JPEG: no frame", problem);
        return BM_OK;
    }
    if (colours == TJCS_CMYK || colours == TJCS_YCCK) {
        bm_problem_set(problem, "in CMYK",
                       "%s: a JPEG in CMYK; convert it to grey or RGB",
                       s->path);
        return BM_OK;
    }
    BM_TRY(bm_image_room(out, s, (size_t)width, (size_t)height, problem));
    if (!bm_problem_is(problem) && !decompress(out, s, jpeg))
        bm_image_damaged(s, tjGetErrorStr2(jpeg), problem);
    if (bm_problem_is(problem))
        return BM_OK;
    return bm_image_turn(out, bm_exif_orientation(s->bytes, s->size));
}

bm_status bm_image_jpeg(bm_line_image *out, const bm_image_source *s,
                        bm_problem *problem)
{
    tjhandle jpeg = tjInitDecompress();
    bm_status status = BM_OK;

    if (jpeg == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", s->path);
    status = decode(out, s, jpeg, problem);
    tjDestroy(jpeg);
    return status;
}
