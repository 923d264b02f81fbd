#include "tests/cli/score/scored.h"

json_t *score_of(outcome o)
{
    assert_code(o, 0);
    assert_int_equal(count_of(o.err, "\n"),
                     count_of(o.err, "is unreliable") +
                         count_of(o.err, "if they are lists of PyLaia"));
    return parse_json(o.out);
}

const json_t *system_of(const json_t *result, size_t k)
{
    return json_array_get(json_object_get(result, "systems"), k);
}

const json_t *words_of(const json_t *result)
{
    return json_object_get(system_of(result, 0), "words");
}

const json_t *characters_of(const json_t *result)
{
    return json_object_get(system_of(result, 0), "characters");
}
