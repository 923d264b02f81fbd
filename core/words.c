#include "core/words.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

bool bm_ends_with(const char *text, const char *ending)
{
    size_t n = strlen(text), k = strlen(ending);

    return n >= k && strcmp(text + n - k, ending) == 0;
}

size_t bm_word_distance(const char *word, const char *ours)
{
    enum { LONGEST = 64 };
    size_t row[LONGEST], n = strlen(ours);

    if (n >= LONGEST)
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; word[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t change = diagonal + (word[i - 1] != ours[j - 1]);
            size_t insert = row[j - 1] + 1, drop = row[j] + 1;
            diagonal = row[j];
            row[j] = change < insert ? change : insert;
            row[j] = row[j] < drop ? row[j] : drop;
        }
    }
    return row[n];
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

void bm_nearest_word(const char *word, const char *list, char *out, size_t room)
{
    size_t best = SIZE_MAX;

    for (const char *ours = list; *ours != '\0';) {
        char one[64];
        size_t n = strcspn(ours, " "), d = 0;

        snprintf(one, sizeof one, "%.*s", (int)n, ours);
        d = bm_word_distance(word, one);
        if (d < best) {
            best = d;
            snprintf(out, room, "%s", one);
        }
        ours += n + strspn(ours + n, " ");
    }
}
