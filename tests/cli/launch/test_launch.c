/*
 * -n RANKS: the arguments and the environment that mpirun gets, printed by a
 * substitute for mpirun; and the folder for the job's files in TMPDIR.
 */
#define _GNU_SOURCE /* unshare, F_OFD_SETLK */
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/program.h"
#include "tests/support/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const limits[] = {
    "btl_tcp_rndv_eager_limit", "btl_tcp_eager_limit", "btl_tcp_max_send_size"};

static const char *variable(const char *limit)
{
    static char name[64];

    snprintf(name, sizeof name, "OMPI_MCA_%s", limit);
    return name;
}

static outcome launch(void)
{
    return BMUF("train", "any.ini", "-n", "3", "--out", "two words", "-v");
}

static void test_mpirun_runs_the_same_command(void **_)
{
    outcome o = launch();

    (void)_;
    assert_code(o, 0);
    assert_says(o.out, "\n-np\n3\n");
    assert_says(o.out, "\ntrain\nany.ini\n-n\n3\n--out\ntwo words\n-v\n");
    assert_int_equal(count_of(o.err, "starting: mpirun -np 3 "), 1);
}

/* The limits are arguments of mpirun, before the program. */
static void test_tcp_limits_are_set(void **_)
{
    outcome o = launch();
    const char *itself = strstr(o.out, "\ntrain\n");

    (void)_;
    assert_non_null(itself);
    FOR_EACH (i, limits) {
        char words[100];

        snprintf(words, sizeof words, "\n--mca\n%s\n8388608\n", limits[i]);
        assert_says(o.out, words);
        assert_true(strstr(o.out, words) < itself);
        assert_int_equal(count_of(o.out, limits[i]), 1);
        assert_int_equal(count_of(o.err, limits[i]), 1);
    }
}

static void test_limits_of_the_environment_are_kept(void **_)
{
    (void)_;
    FOR_EACH (i, limits) {
        char own[100];
        outcome o;

        setenv(variable(limits[i]), "70000", 1);
        o = launch();
        unsetenv(variable(limits[i]));
        snprintf(own, sizeof own, "\n%s=70000\n", variable(limits[i]));
        assert_code(o, 0);
        assert_says(o.out, own);
        assert_int_equal(count_of(o.out, "btl_tcp_"), 1);
        assert_null(strstr(o.err, "btl_tcp_"));
    }
}

/* ---- hosts and launchers ------------------------------------------------ */

/* Runs `train` with these options, where the environment has "NAME=value ..". */
static outcome train_with(const char *environment, const char *option,
                          const char *value)
{
    char text[400], *names[8], *rest = NULL;
    size_t n = 0;
    outcome o;

    snprintf(text, sizeof text, "%s", environment);
    for (char *word = strtok_r(text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        char *sign = strchr(word, '=');

        *sign = '\0';
        setenv(word, sign + 1, 1);
        names[n++] = word;
    }
    o = option != NULL ? BMUF("train", "any.ini", option, value)
                       : BMUF("train", "any.ini");
    while (n-- > 0)
        unsetenv(names[n]);
    return o;
}

/* Hosts that are all this one need no ssh. */
static void test_slots_of_this_host_are_ranks(void **_)
{
    outcome o = train_with("", "--hosts", "localhost:2");

    (void)_;
    assert_code(o, 0);
    assert_says(o.out, "\n-np\n2\n");
    assert_null(strstr(o.out, "\n--host\n"));
    write_text("hosts", "localhost slots=2 max_slots=3 # this one\n");
    o = train_with("", "--hostfile", in_folder("hosts"));
    assert_code(o, 0);
    assert_says(o.out, "\n-np\n2\n");
}

#define ALLOCATION                                                             \
    "SLURM_JOB_ID=7 SLURM_JOB_NODELIST=a[1-2] SLURM_TASKS_PER_NODE=1(x2) "

/* An allocation needs no option; -n may leave out some of it. */
static void test_an_allocation_of_slurm_is_used(void **_)
{
    outcome o = train_with(ALLOCATION, NULL, NULL);

    (void)_;
    assert_code(o, 0);
    assert_says(o.out, "\n-np\n2\n");
    assert_says(o.out, "\n--host\na1:1,a2:1\n");
    assert_says(o.out, "\n-x\nBMUF_LAUNCH_COMMAND\n");
    assert_says(o.out, "\n--mca\noob_tcp_keepalive_time\n3\n");
    assert_null(strstr(o.out, "plm_rsh_args")); /* srun starts the daemons */
    o = train_with(ALLOCATION, "-n", "1");
    assert_says(o.out, "\n--host\na1:1\n");
    o = train_with(ALLOCATION, "-n", "3");
    assert_fails(o, 64, "3 ranks", "2 slots");
    o = train_with(ALLOCATION "SLURM_JOB_CPUS_PER_NODE=2(x2)", "-n", "3");
    assert_says(o.out, "\n--host\na1:2,a2:1\n");
    o = train_with("SLURM_JOB_ID=7 SLURM_JOB_NODELIST=a[1-", NULL, NULL);
    assert_fails(o, 78, "SLURM_JOB_NODELIST");
}

/* srun -N 1 -n 1 in a job of two nodes: no rank goes to other nodes. The nodes
 * are those of the job, the tasks those of the step. */
static void test_a_single_task_of_slurm_stays_where_it_is(void **_)
{
    static const char *const tasks[] = {"1", "2(x2)"};

    (void)_;
    FOR_EACH (i, tasks) {
        char task[200];
        outcome o;

        snprintf(task, sizeof task,
                 "SLURM_JOB_ID=7 SLURM_JOB_NODELIST=a[1-2] SLURM_STEP_ID=0 "
                 "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_NTASKS=1 "
                 "SLURM_TASKS_PER_NODE=%s",
                 tasks[i]);
        assert_fails(train_with(task, NULL, NULL), 66, "train");
        o = train_with(task, "-n", "2");
        assert_code(o, 0);
        assert_says(o.out, "\n-np\n2\n");
        assert_null(strstr(o.out, "\n--host\n"));
        assert_says(o.out, "\n--mca\nras\n^slurm\n");
    }
}

/* eval has no hosts: with -n its ranks are on this one, in an allocation, too. */
static void test_ranks_of_this_host_need_no_allocation(void **_)
{
    outcome o = BMUF("eval", "run", "data", "-n", "2");

    (void)_;
    assert_code(o, 0);
    assert_null(strstr(o.out, "\nras\n"));
    setenv("SLURM_JOB_ID", "7", 1);
    o = BMUF("eval", "run", "data", "-n", "2");
    unsetenv("SLURM_JOB_ID");
    assert_code(o, 0);
    assert_says(o.out, "\n--mca\nras\n^slurm\n");
}

/* As in a container without ssh and rsh. */
static void test_ranks_of_this_host_need_no_remote_shell(void **_)
{
    char script[] = "mkdir \"$1/tools\" && ln -s ../mpirun \"$1/tools\" && "
                    "for t in sed env grep; do "
                    "ln -s \"$(command -v $t)\" \"$1/tools\" || exit; done";
    char path[8192];
    outcome o;

    (void)_;
    snprintf(path, sizeof path, "%s", getenv("PATH"));
    write_text("ssh", "");
    assert_int_equal(chmod(in_folder("ssh"), 0700), 0);
    o = launch();
    assert_null(strstr(o.out, "\nplm\n"));
    assert_int_equal(unlink(in_folder("ssh")), 0);
    run_tool(
        (char *[]){"sh", "-c", script, "sh", (char *)in_folder("."), NULL});
    setenv("PATH", in_folder("tools"), 1);
    o = launch();
    setenv("OMPI_MCA_plm_rsh_agent", "mine", 1);
    assert_null(strstr(launch().out, "\nplm\n"));
    unsetenv("OMPI_MCA_plm_rsh_agent");
    setenv("PATH", path, 1);
    assert_code(o, 0);
    assert_says(o.out, "\n--mca\nplm\n^rsh\n");
}

static void test_an_interface_without_other_hosts_is_warned_of(void **_)
{
    (void)_;
    assert_says(BMUF("train", "any.ini", "-n", "2", "--interface", "eth9").err,
                "--interface eth9 has no effect: all ranks are on this host");
    assert_null(strstr(launch().err, "--interface"));
}

/* What others have started is not started again. */
static void test_ranks_that_others_have_started(void **_)
{
    static const char step[] = "SLURM_STEP_ID=0 SLURM_PROCID=0 "
                               "SLURM_STEP_NUM_TASKS=2";

    (void)_;
    assert_fails(train_with(step, NULL, NULL), 64, "without PMIx",
                 "srun --mpi=pmix", "leave out srun");
    assert_fails(train_with("SLURM_STEP_ID=0 SLURM_PROCID=0 PMIX_RANK=0 "
                            "SLURM_STEP_NUM_TASKS=2",
                            "-n", "2"),
                 64, "srun has started", "drop -n", "without srun");
    assert_fails(train_with("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0",
                            "--hosts", "a:2"),
                 64, "mpirun has started", "drop --hosts", "without mpirun");
    assert_fails(train_with("PMI_RANK=0 PMI_SIZE=2", NULL, NULL), 64,
                 "another MPI", "-n 2");
}

/* Its host may lack a file that the others have. */
static void test_a_rank_that_fails_before_mpi_says_so(void **_)
{
    (void)_;
    assert_fails(train_with("OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=3",
                            "--set", "train.rate=x"),
                 78, "rank 3 on host ", "train.rate: 'x' is not a number");
}

static void test_wrong_hosts_are_refused(void **_)
{
    (void)_;
    assert_fails(train_with("", "--hosts", "a:b"), 64, "--hosts", "'a:b'",
                 "a:4,b:4");
    assert_fails(train_with("", "--hosts", "-oProxyCommand=id"), 64,
                 "invalid host name");
    assert_fails(train_with("", "--hosts", "a:4,"), 64,
                 "--hosts a:4,: the name of a host is empty");
    assert_fails(train_with("", "--hostfile", in_folder("none")), 66, "none");
    assert_fails(train_with("", "--hosts", "no.such.host.invalid"), 69,
                 "no.such.host.invalid", "/etc/hosts");
}

/* ---- TMPDIR ------------------------------------------------------------- */

static void make_old(const char *name)
{
    const struct timespec times[2] = {{1000000, 0}, {1000000, 0}};

    assert_int_equal(utimensat(AT_FDCWD, in_folder(name), times, 0), 0);
}

/* A folder as a supervisor on this host leaves it, long ago. */
static void make_left(const char *name, const char *host)
{
    char path[100], text[300];

    assert_int_equal(mkdir(in_folder(name), 0700), 0);
    snprintf(path, sizeof path, "%s/supervisor", name);
    snprintf(text, sizeof text, "host %s, process 1\n", host);
    write_text(path, text);
    snprintf(path, sizeof path, "%s/a", name);
    assert_int_equal(mkdir(in_folder(path), 0700), 0);
    snprintf(path, sizeof path, "%s/a/b", name);
    assert_int_equal(mkdir(in_folder(path), 0700), 0);
    snprintf(path, sizeof path, "%s/a/b/segment", name);
    write_text(path, "x");
    make_old(name);
}

/* The number of names bmuf-* in a folder; one of them. */
static int left_in(const char *name, char *one, size_t room)
{
    DIR *list = opendir(in_folder(name));
    const struct dirent *entry = NULL;
    int n = 0;

    assert_non_null(list);
    while ((entry = readdir(list)) != NULL)
        if (strncmp(entry->d_name, "bmuf-", 5) == 0) {
            snprintf(one, room, "%s/%s", name, entry->d_name);
            n++;
        }
    closedir(list);
    return n;
}

static void test_folders_of_dead_supervisors_are_removed(void **_)
{
    static const char *const kept[] = {
        "tmp/bmuf-fresh0",    "tmp/bmuf-alive0", "tmp/bmuf-other0",
        "tmp/bmuf-link00",    "tmp/left-dead00", "target/a/b/segment",
        "outside/precious.h5"};
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char host[256] = "", one[300];
    int lock = -1;

    (void)_;
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    assert_int_equal(mkdir(in_folder("tmp"), 0700), 0);
    assert_int_equal(mkdir(in_folder("outside"), 0700), 0);
    write_text("outside/precious.h5", "x");
    make_left("tmp/bmuf-dead00", host);
    assert_int_equal(
        symlink("../../outside", in_folder("tmp/bmuf-dead00/link")), 0);
    make_old("tmp/bmuf-dead00");
    make_left("tmp/bmuf-fresh0", host);
    assert_int_equal(utimensat(AT_FDCWD, in_folder(kept[0]), NULL, 0), 0);
    make_left("tmp/bmuf-alive0", host);
    lock = open(in_folder("tmp/bmuf-alive0/supervisor"), O_RDWR | O_CLOEXEC);
    assert_int_equal(fcntl(lock, F_OFD_SETLK, &whole), 0);
    make_left("tmp/bmuf-other0", "elsewhere.example.org");
    make_left("tmp/left-dead00", host);
    make_left("target", host);
    assert_int_equal(symlink("../target", in_folder("tmp/bmuf-link00")), 0);
    setenv("TMPDIR", in_folder("tmp"), 1);
    assert_code(launch(), 0);
    unsetenv("TMPDIR");
    FOR_EACH (i, kept)
        if (access(in_folder(kept[i]), F_OK) != 0)
            fail_msg("%s was removed", kept[i]);
    assert_int_not_equal(access(in_folder("tmp/bmuf-dead00"), F_OK), 0);
    assert_int_equal(left_in("tmp", one, sizeof one), 4); /* not its own */
    close(lock);
}

/* program_start has TMPDIR in the folder of the test. */
static void test_a_killed_supervisor_leaves_nothing_for_long(void **_)
{
    char one[300];
    double since = now();
    program p;

    (void)_;
    write_text("sleep", "");
    program_start(&p,
                  (const char *const[]){"train", "any.ini", "-n", "3", NULL});
    while (left_in(".", one, sizeof one) == 0 && now() - since < 30)
        pause_for(0.01);
    pause_for(0.3);
    kill(p.pid, SIGKILL);
    program_wait(&p);
    assert_int_equal(remove(in_folder("sleep")), 0);
    assert_int_equal(left_in(".", one, sizeof one), 1);
    make_old(one);
    setenv("TMPDIR", in_folder("."), 1);
    assert_code(launch(), 0);
    unsetenv("TMPDIR");
    assert_int_equal(left_in(".", one, sizeof one), 0);
}

/* mpirun prints a line a hundred times a second, and counts SIGUSR1. */
static void test_a_stop_is_repeated_by_the_clock(void **_)
{
    size_t n = 0;
    double since = now(), count = 0;
    char *printed = NULL;
    program p;

    (void)_;
    write_text("storm", "");
    program_start(&p,
                  (const char *const[]){"train", "any.ini", "-n", "3", NULL});
    while (access(in_folder("ready"), F_OK) != 0 && now() - since < 30)
        pause_for(0.01);
    since = now();
    kill(p.pid, SIGTERM);
    assert_ended(&p, 0);
    since = now() - since;
    assert_int_equal(remove(in_folder("storm")), 0);
    printed = slurp(p.out, &n);
    assert_int_equal(sscanf(printed, "signals %lf", &count), 1);
    assert_true(count >= 2 && count < 2 + since / 0.2);
    free(printed);
}

/* Puts a file system of this size over the folder, for this process and its
 * children. */
static bool mount_small(const char *name, const char *size)
{
    return unshare(CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", in_folder(name), "tmpfs", 0, size) == 0;
}

static void test_a_full_tmpdir_is_named(void **_)
{
    outcome o;

    (void)_;
    assert_int_equal(mkdir(in_folder("small"), 0700), 0);
    if (!mount_small("small", "size=1m")) {
        print_message("needs permission to mount a file system\n");
        skip();
    }
    setenv("TMPDIR", in_folder("small"), 1);
    o = launch();
    assert_fails(o, 73, "TMPDIR ",
                 "/small: 1.0 MB are free, but Open MPI "
                 "needs 9 MB there to start; free some, or set TMPDIR");
    assert_int_equal(umount(in_folder("small")), 0);
    assert_int_equal(mount("none", in_folder("small"), "tmpfs", 0, "size=12m"),
                     0);
    o = launch();
    assert_code(o, 0);
    assert_says(o.err, "/small: 12.0 MB are free, but the shared memory of 3 "
                       "ranks needs 21 MB");
    assert_int_equal(umount(in_folder("small")), 0);
    setenv("TMPDIR", "/nowhere", 1);
    assert_fails(launch(), 73, "TMPDIR /nowhere: No such file",
                 "set TMPDIR to another folder");
    unsetenv("TMPDIR");
}

/* Its codes above 192 are no signal's. No rank has started, so that there is
 * nothing to resume. */
static void test_a_failure_of_mpirun_is_called_so(void **_)
{
    outcome o;

    (void)_;
    write_text("refuse", "");
    o = launch();
    assert_int_equal(unlink(in_folder("refuse")), 0);
    assert_fails(o, 69, "no hosts of this name", "mpirun failed with code 255");
    assert_int_equal(count_of(o.err, "resume"), 0);
}

/* mpirun ends with 205 then, and with 128 + n after signal n to a rank. */
static void test_a_lost_host_is_told_from_a_signal(void **_)
{
    (void)_;
    write_text("code", "205");
    assert_fails(BMUF("eval", "run", "data", "-n", "2"), 69,
                 "mpirun has lost the connection to a host");
    write_text("code", "137");
    assert_fails(BMUF("eval", "run", "data", "-n", "2"), 137,
                 "mpirun or a rank was killed by signal 9");
    assert_int_equal(unlink(in_folder("code")), 0);
}

/* mpirun itself ends with 0 then. */
static void test_a_full_disk_for_results_is_a_failure(void **_)
{
    const char *const words[] = {"eval", "run", "data", "-n", "2", NULL};
    outcome o = command_run(&(command){.words = words, .out = "/dev/full"});

    (void)_;
    assert_code(o, 74);
    assert_says(o.err, "cannot write results to stdout: No space left");
}

/* A loop of the shell over lines goes on behind a command with -n. */
static void test_ranks_leave_the_input_alone(void **_)
{
    const char *const words[] = {"train", "any.ini", "-n", "3", NULL};
    outcome o;

    (void)_;
    write_text("lines", "a\nb\n");
    o = command_run(&(command){.words = words, .in = "lines"});
    assert_code(o, 0);
    assert_int_equal(count_of(o.out, "input:"), 0);
}

static int prepare(void **state)
{
    const char *before = getenv("PATH");
    char path[8192];

    if (folder_make(state) != 0 || before == NULL)
        return 1;
    FOR_EACH (i, limits)
        unsetenv(variable(limits[i]));
    write_text("mpirun", "#!/bin/sh\n"
                         "[ ! -e sleep ] || exec sleep 20\n"
                         "[ ! -e code ] || exit $(cat code)\n"
                         "if [ -e refuse ]; then\n"
                         "    echo no hosts of this name >&2; exit 255\n"
                         "fi\n"
                         "if [ -e storm ]; then\n"
                         "    n=0 i=0\n"
                         "    trap 'n=$((n + 1))' USR1\n"
                         "    : >ready\n"
                         "    while [ $i -lt 120 ]; do\n"
                         "        echo line >&2; sleep 0.01; i=$((i + 1))\n"
                         "    done\n"
                         "    echo signals $n\n"
                         "    exit 0\n"
                         "fi\n"
                         "echo words:\n"
                         "printf '%s\\n' \"$@\"\n"
                         "sed 's/^/input: /'\n"
                         "env | grep '^OMPI_MCA_'\n"
                         "exit 0\n");
    write_text("any.ini", "[data]\n"
                          "train = train\n"
                          "[model]\n"
                          "net = linear\n"
                          "[job]\n"
                          "workers = 3\n"
                          "[schedule]\n"
                          "kind = constant\n");
    snprintf(path, sizeof path, "%s:%s", in_folder("."), before);
    return chmod(in_folder("mpirun"), 0700) != 0 ||
           setenv("PATH", path, 1) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mpirun_runs_the_same_command),
        cmocka_unit_test(test_tcp_limits_are_set),
        cmocka_unit_test(test_limits_of_the_environment_are_kept),
        cmocka_unit_test(test_slots_of_this_host_are_ranks),
        cmocka_unit_test(test_an_allocation_of_slurm_is_used),
        cmocka_unit_test(test_a_single_task_of_slurm_stays_where_it_is),
        cmocka_unit_test(test_ranks_of_this_host_need_no_allocation),
        cmocka_unit_test(test_ranks_of_this_host_need_no_remote_shell),
        cmocka_unit_test(test_an_interface_without_other_hosts_is_warned_of),
        cmocka_unit_test(test_ranks_that_others_have_started),
        cmocka_unit_test(test_a_rank_that_fails_before_mpi_says_so),
        cmocka_unit_test(test_wrong_hosts_are_refused),
        cmocka_unit_test(test_folders_of_dead_supervisors_are_removed),
        cmocka_unit_test_teardown(
            test_a_killed_supervisor_leaves_nothing_for_long, programs_end),
        cmocka_unit_test_teardown(test_a_stop_is_repeated_by_the_clock,
                                  programs_end),
        cmocka_unit_test(test_a_full_tmpdir_is_named),
        cmocka_unit_test(test_a_failure_of_mpirun_is_called_so),
        cmocka_unit_test(test_a_lost_host_is_told_from_a_signal),
        cmocka_unit_test(test_a_full_disk_for_results_is_a_failure),
        cmocka_unit_test(test_ranks_leave_the_input_alone),
    };
    return cmocka_run_group_tests_name("launch", tests, prepare, folder_remove);
}
