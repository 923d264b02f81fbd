#include "core/text/words.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

bool bm_ends_with(const char *text, const char *ending)
{
    size_t n = strlen(text), k = strlen(ending);

    return n >= k && strcmp(text + n - k, ending) == 0;
}

void bm_word_plain(const char *word, size_t n, char *out, size_t room)
{
    size_t k = 0;

    for (size_t i = 0; i < n && k + 1 < room; i++)
        if (word[i] != '_' && word[i] != '-')
            out[k++] = (char)tolower((unsigned char)word[i]);
    out[k] = '\0';
}

static int small(char c)
{
    return tolower((unsigned char)c);
}

size_t bm_word_distance(const char *word, const char *ours)
{
    enum { LONGEST = 64 };
    size_t rows[3][LONGEST], n = strlen(ours), m = strlen(word);

    if (n >= LONGEST)
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *row = rows[i % 3], *last = rows[(i + 2) % 3];
        const size_t *before = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t least =
                last[j - 1] + (small(word[i - 1]) != small(ours[j - 1]));

            least = row[j - 1] + 1 < least ? row[j - 1] + 1 : least;
            least = last[j] + 1 < least ? last[j] + 1 : least;
            if (i > 1 && j > 1 && small(word[i - 1]) == small(ours[j - 2]) &&
                small(word[i - 2]) == small(ours[j - 1]) &&
                before[j - 2] + 1 < least)
                least = before[j - 2] + 1;
            row[j] = least;
        }
    }
    return rows[m % 3][n];
}

static bool is_near(const char *word, const char *ours)
{
    size_t n = strlen(word), k = strlen(ours), most = (n > k ? n : k) / 3;

    return bm_word_distance(word, ours) <= (most > 1 ? most : 1);
}

bool bm_is_word_of(const char *word, const char *list)
{
    size_t length = strlen(word);

    for (const char *ours = list; *ours != '\0';) {
        size_t n = strcspn(ours, " ");
        if (n == length && strncmp(ours, word, n) == 0)
            return true;
        ours += n + strspn(ours + n, " ");
    }
    return false;
}

bool bm_nearest_word(const char *word, const char *list, char *out, size_t room)
{
    size_t best = SIZE_MAX;

    out[0] = '\0';
    for (const char *ours = list; *ours != '\0';) {
        char one[64];
        size_t n = strcspn(ours, " "), d = 0;

        snprintf(one, sizeof one, "%.*s", (int)n, ours);
        d = bm_word_distance(word, one);
        if (d < best && is_near(word, one)) {
            best = d;
            snprintf(out, room, "%s", one);
        }
        ours += n + strspn(ours + n, " ");
    }
    return best < SIZE_MAX;
}

bm_counted bm_count_noun(long long n, const char *noun)
{
    bm_counted c;
    size_t length = strlen(noun);
    const char *ending = "s";

    if (n == 1)
        ending = "";
    else if (bm_ends_with(noun, "s") || bm_ends_with(noun, "x") ||
             (bm_ends_with(noun, "ch") && !bm_ends_with(noun, "och")))
        ending = "es";
    else if (bm_ends_with(noun, "y") && length > 1 &&
             strchr("aeiou", noun[length - 2]) == NULL)
        ending = "ies";
    length -= ending[0] == 'i';
    snprintf(c.text, sizeof c.text, "%lld %.*s%s", n, (int)length, noun,
             ending);
    return c;
}
