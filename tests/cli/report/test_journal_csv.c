/*
 * bmuf info --csv: journals as one table, by RFC 4180.
 */
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>

static void make_run(const char *name, const char *text)
{
    char path[80];

    assert_int_equal(mkdir(in_folder(name), 0777), 0);
    snprintf(path, sizeof path, "%s/journal.jsonl", name);
    write_text(path, text);
}

/* A resumed run with a text that needs quotes, numbers of nine digits, a value
 * that is null, a field that appears late, and a line that is cut. */
static const char one[] =
    "{\"event\":\"start\",\"time\":\"T0\",\"attempt\":1,\"net\":\"a, \\\"b\\\""
    "\"}\n"
    "{\"event\":\"block\",\"time\":\"T1\",\"epoch\":0,\"block\":0,"
    "\"loss\":1.23456789,\"zeta\":null}\n"
    "{\"event\":\"start\",\"time\":\"T2\",\"attempt\":2,\"net\":\"x\\ny\"}\n"
    "{\"event\":\"block\",\"time\":\"T3\",\"epoch\":0,\"block\":0,"
    "\"loss\":0.5,\"zeta\":7,\"more\":-1}\n"
    "{\"event\":\"end\",\"ti";

static void test_all_events_of_a_run_are_one_table(void **_)
{
    outcome o;

    (void)_;
    make_run("one", one);
    o = BMUF("info", "one", "--csv");
    assert_code(o, 0);
    assert_string_equal(
        o.out, "run,attempt,event,time,net,epoch,block,loss,zeta,more\r\n"
               "one,1,start,T0,\"a, \"\"b\"\"\",,,,,\r\n"
               "one,1,block,T1,,0,0,1.23456789,,\r\n"
               "one,2,start,T2,x\\ny,,,,,\r\n"
               "one,2,block,T3,,0,0,0.5,7,-1\r\n");
}

static void test_one_kind_has_its_own_columns(void **_)
{
    outcome o;

    (void)_;
    o = BMUF("info", "one/", "--csv", "--event", "block");
    assert_code(o, 0);
    assert_string_equal(o.out,
                        "run,attempt,event,time,epoch,block,loss,zeta,more\r\n"
                        "one,1,block,T1,0,0,1.23456789,,\r\n"
                        "one,2,block,T3,0,0,0.5,7,-1\r\n");
}

static void test_a_directory_of_runs_is_one_table(void **_)
{
    outcome o;

    (void)_;
    assert_int_equal(mkdir(in_folder("many"), 0777), 0);
    make_run("many/b", "{\"event\":\"block\",\"epoch\":1,\"loss\":2}\n");
    make_run("many/a,1", "{\"event\":\"start\",\"attempt\":4}\n"
                         "{\"event\":\"block\",\"epoch\":3,\"new\":[1,2]}\n");
    o = BMUF("info", "many", "--csv", "--event=block");
    assert_code(o, 0);
    assert_string_equal(o.out, "run,attempt,event,epoch,new,loss\r\n"
                               "\"a,1\",4,block,3,\"[1,2]\",\r\n"
                               "b,0,block,1,,2\r\n");
}

/* A journal that cannot be read, here a directory, does not hide the others. */
static void test_unreadable_runs_do_not_hide_others(void **_)
{
    json_t *table = NULL;
    outcome o;

    (void)_;
    assert_int_equal(mkdir(in_folder("some"), 0777), 0);
    assert_int_equal(mkdir(in_folder("some/bad"), 0777), 0);
    assert_int_equal(mkdir(in_folder("some/bad/journal.jsonl"), 0777), 0);
    make_run("some/one", "{\"event\":\"block\",\"epoch\":1,\"loss\":2}\n");
    o = BMUF("info", "some", "--csv");
    assert_code(o, 66);
    assert_says(o.err, "1 of 2 runs in some cannot be read\n");
    assert_string_equal(o.out, "run,attempt,event,epoch,loss\r\n"
                               "one,0,block,1,2\r\n");
    assert_int_equal(count_of(o.err, "some/bad/journal.jsonl"), 1);
    o = BMUF("info", "some");
    assert_code(o, 66);
    assert_says(o.err, "1 of 2 runs in some cannot be read\n");
    assert_says(o.out, "\nbad unreadable\none ");
    o = BMUF("info", "some", "--json");
    assert_int_equal(o.code, 66);
    table = json_loads(o.out, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(table, "runs")), 1);
    json_decref(table);
}

static void test_what_has_no_journal_is_refused(void **_)
{
    (void)_;
    write_text("file.txt", "x");
    assert_fails(BMUF("info", "file.txt", "--csv"), 64, "file.txt",
                 "neither a run nor a directory of runs");
    assert_fails(BMUF("info", "one", "--csv", "--event", "blocks"), 64,
                 "--event blocks: one has no such event, only start block");
    assert_fails(BMUF("info", "one", "--event", "block"), 64,
                 "--event requires --csv");
    assert_fails(BMUF("info", "one", "--csv", "--json"), 64, "--csv or --json");
    assert_fails(BMUF("info", "none", "--csv"), 66, "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_events_of_a_run_are_one_table),
        cmocka_unit_test(test_one_kind_has_its_own_columns),
        cmocka_unit_test(test_a_directory_of_runs_is_one_table),
        cmocka_unit_test(test_unreadable_runs_do_not_hide_others),
        cmocka_unit_test(test_what_has_no_journal_is_refused),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
