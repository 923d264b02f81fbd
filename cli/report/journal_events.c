#include "cli/report/journal_events.h"

#include "core/file/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bm_status bm_journal_events(const char *directory,
                            void (*take)(void *self, const char *kind,
                                         json_t *event),
                            void *self)
{
    char path[4096], *text = NULL, *rest = NULL;
    size_t size = 0;

    snprintf(path, sizeof path, "%s/journal.jsonl", directory);
    BM_TRY(bm_file_read(path, (size_t)1 << 32, &text, &size));
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        json_t *event = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        const char *kind = json_string_value(json_object_get(event, "event"));

        if (kind != NULL)
            take(self, kind, event);
        json_decref(event);
    }
    free(text);
    return BM_OK;
}

double bm_event_number_or(const json_t *event, const char *key,
                          double otherwise)
{
    const json_t *value = json_object_get(event, key);

    return json_is_number(value) ? json_number_value(value) : otherwise;
}

double bm_event_number(const json_t *event, const char *key)
{
    return bm_event_number_or(event, key, 0);
}

size_t bm_event_count(const json_t *event, const char *key)
{
    double x = bm_event_number(event, key);

    return x >= 0 && x <= 9007199254740992.0 ? (size_t)x : 0;
}
