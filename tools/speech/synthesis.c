#include "tools/speech/synthesis.h"

#include "core/grow.h"
#include "tools/speech/grammar.h"

#include <ctype.h>
#include <espeak-ng/speak_lib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What espeak-ng has spoken; its callback has no other place for it. */
static struct spoken {
    int16_t *x; /* [n] */
    size_t n, room;
    bool lost; /* no memory */
} spoken;
static bool is_open;

static int receive(short *x, int n, espeak_EVENT *events)
{
    size_t more = x == NULL || n < 0 ? 0 : (size_t)n;

    (void)events;
    if (bm_grow(&spoken.x, spoken.n + more, &spoken.room, sizeof *spoken.x) !=
        BM_OK) {
        spoken.lost = true;
        return 1; /* abort */
    }
    if (more > 0)
        memcpy(spoken.x + spoken.n, x, more * sizeof *x);
    spoken.n += more;
    return 0;
}

bm_status bm_synthesis_open(void)
{
    int rate = espeak_Initialize(AUDIO_OUTPUT_SYNCHRONOUS, 0, NULL,
                                 espeakINITIALIZE_DONT_EXIT);

    if (rate <= 0)
        return BM_FAIL(BM_ERR_MISSING,
                       "espeak-ng finds no data; install the package "
                       "espeak-ng-data");
    if (rate != BM_SYNTHESIS_RATE)
        return BM_FAIL(BM_ERR_UNSUPPORTED, "espeak-ng speaks at %d Hz, not %d",
                       rate, BM_SYNTHESIS_RATE);
    espeak_SetSynthCallback(receive);
    srand(1); /* for breath; libpulse has called rand() if HOME is new */
    is_open = true;
    return BM_OK;
}

void bm_synthesis_close(void)
{
    if (is_open)
        espeak_Terminate();
    is_open = false;
    free(spoken.x);
    spoken = (struct spoken){0};
}

const char *bm_synthesis_version(void)
{
    return espeak_Info(NULL);
}

/* espeak-ng takes the base voice if it does not know the variant. */
static bm_status choose_voice(const bm_speaker *speaker, int speed)
{
    const espeak_VOICE *voice = NULL;

    if (espeak_SetVoiceByName(speaker->voice) == EE_OK)
        voice = espeak_GetCurrentVoice();
    if (voice == NULL || voice->identifier == NULL ||
        strcmp(voice->identifier, speaker->voice) != 0)
        return BM_FAIL(BM_ERR_MISSING,
                       "this espeak-ng has no voice %s; install the package "
                       "espeak-ng-data of version 1.51",
                       speaker->voice);
    if (espeak_SetParameter(espeakPITCH, speaker->pitch, 0) != EE_OK ||
        espeak_SetParameter(espeakRANGE, speaker->range, 0) != EE_OK ||
        espeak_SetParameter(espeakRATE, speed, 0) != EE_OK ||
        espeak_SetParameter(espeakWORDGAP, speaker->gap, 0) != EE_OK)
        return BM_FAIL(BM_ERR_UNSUPPORTED,
                       "espeak-ng does not take pitch %d, range %d, speed %d",
                       speaker->pitch, speaker->range, speed);
    return BM_OK;
}

/* espeak-ng spells single capitals, where "a" would be an article. */
static void spell_letters(const char *text, char out[BM_LONGEST_TEXT])
{
    size_t n = strlen(text);

    for (size_t i = 0; i <= n; i++) {
        bool single = (i == 0 || text[i - 1] == ' ') &&
                      (text[i + (i < n)] == ' ' || i + 1 >= n);

        out[i] = single ? (char)toupper((unsigned char)text[i]) : text[i];
    }
}

bm_status bm_synthesis_speak(const bm_speaker *speaker, int speed,
                             const char *text, const int16_t **x, size_t *n)
{
    char capital[BM_LONGEST_TEXT];

    BM_ASSERT(strlen(text) < BM_LONGEST_TEXT);
    BM_TRY(choose_voice(speaker, speed));
    spell_letters(text, capital);
    spoken.n = 0;
    spoken.lost = false;
    if (espeak_Synth(capital, strlen(capital) + 1, 0, POS_CHARACTER, 0,
                     espeakCHARS_UTF8, NULL, NULL) != EE_OK)
        return BM_FAIL(BM_ERR_UNSUPPORTED, "espeak-ng cannot speak \"%s\"",
                       text);
    if (spoken.lost)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for \"%s\"", text);
    *x = spoken.x;
    *n = spoken.n;
    return BM_OK;
}
