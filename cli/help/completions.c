/*
 * completions.c - bmuf completions: a script that completes verbs, options,
 * settings and their values in bash or zsh, from the tables of verbs and
 * settings. The script holds all words; it does not start the program.
 */
#include "cli/help/setting_text.h"
#include "cli/settings.h"
#include "cli/verbs.h"
#include "core/text/words.h"

#include <ctype.h>
#include <string.h>

/* ---- what is completed --------------------------------------------------- */

/* What a value, or an argument of a verb, is. */
typedef enum kind { NOTHING, FILES, FOLDERS, WORDS, SETTINGS, VERBS } kind;

/* From its name in --help: "FILE", "cpu|cuda|auto". */
static kind kind_of(const char *name)
{
    if (strstr(name, "VERB") != NULL)
        return VERBS;
    if (strstr(name, "SECTION") != NULL)
        return SETTINGS;
    if (islower((unsigned char)name[0]) && strchr(name, '|') != NULL)
        return WORDS;
    if (strcmp(name, "DIR") == 0 || strcmp(name, "FOLDER") == 0 ||
        strcmp(name, "RUN") == 0)
        return FOLDERS;
    return strstr(name, "FILE") != NULL ? FILES : NOTHING;
}

/* What the arguments of a verb are. */
static kind kind_of_nouns(const bm_verb *verb)
{
    kind k = kind_of(verb->nouns);

    return k == NOTHING && verb->most > 0 ? FILES : k;
}

static void print_words(const char *bars)
{
    for (; *bars != '\0'; bars++)
        putchar(*bars == '|' ? ' ' : *bars);
}

static bool may_be_auto(const bm_option *o)
{
    return o->type == BM_AUTO ||
           (o->type == BM_SERIES && strcmp(o->fallback, "auto") == 0);
}

/* The values of a setting; for BM_TEXT only files are known. */
static kind kind_of_option(const bm_option *o)
{
    if (o->type == BM_CHOICE || o->type == BM_FLAG || may_be_auto(o))
        return WORDS;
    return o->type == BM_TEXT && o->unit != NULL ? kind_of(o->unit) : NOTHING;
}

static void print_values(const bm_option *o)
{
    char word[64];

    if (o->type == BM_FLAG)
        printf("yes no");
    else if (may_be_auto(o))
        printf("auto");
    for (size_t i = 0; bm_choice_at(o, i, word); i++)
        printf("%s%s", i > 0 ? " " : "", word);
}

/* Calls print() for each setting of bmuf pack, or of other verbs; one that
 * several importers have, once. */
static void each_setting(bool pack,
                         void (*print)(const char *section, const bm_option *o))
{
    static char seen[1 << 15];
    bm_setting_group g;

    seen[0] = '\0';
    for (size_t i = 0; bm_setting_group_at(i, &g); i++)
        for (const bm_section *s = g.sections; s->name != NULL; s++)
            for (const bm_option *o = s->options;
                 g.pack == pack && o->key != NULL; o++) {
                size_t n = strlen(seen);
                char name[80];

                snprintf(name, sizeof name, "%s.%s", s->name, o->key);
                if (bm_is_word_of(name, seen))
                    continue;
                snprintf(seen + n, sizeof seen - n, "%s ", name);
                print(s->name, o);
            }
}

static bool takes_pack_settings(const bm_verb *verb)
{
    return strcmp(verb->name, "pack") == 0;
}

static void print_verbs(void)
{
    for (const bm_verb *const *v = bm_verb_list(); *v != NULL; v++)
        printf("%s%s", v != bm_verb_list() ? " " : "", (*v)->name);
}

static void print_sections(void)
{
    for (const bm_section *s = bm_train_sections(); s->name != NULL; s++)
        printf("%s ", s->name);
}

/* ---- bash ---------------------------------------------------------------- */

/* bash breaks words at "=" and ":", unless told otherwise: --set a.b=c is
 * "--set" "a.b" "=" "c". `key` is what stands before the "=". */
static const char bash_head[] =
    "# Completion of bmuf for bash; made by bmuf completions bash.\n"
    "\n"
    "_bmuf_words()\n"
    "{\n"
    "    local word\n"
    "    while read -r word; do\n"
    "        COMPREPLY+=(\"$prefix$word\")\n"
    "    done < <(compgen -W \"$1\" -- \"$cur\")\n"
    "}\n"
    "\n"
    "_bmuf_files()\n"
    "{\n"
    "    local path\n"
    "    while read -r path; do\n"
    "        COMPREPLY+=(\"$prefix$path\")\n"
    "    done < <(compgen \"$1\" -- \"$cur\")\n"
    "    compopt -o filenames 2>/dev/null || :\n"
    "}\n"
    "\n"
    "_bmuf_settings()\n"
    "{\n"
    "    _bmuf_words \"$1\"\n"
    "    compopt -o nospace 2>/dev/null || :\n"
    "}\n"
    "\n";

static const char bash_body[] =
    "_bmuf()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev='' key='' prefix='' verb "
    "option\n"
    "    COMPREPLY=()\n"
    "    ((COMP_CWORD > 0)) && prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    if [[ $cur == '=' ]]; then\n"
    "        key=$prev cur=\n"
    "    elif [[ $prev == '=' ]]; then\n"
    "        key=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    elif [[ $cur == *=* ]]; then\n"
    "        key=${cur%%=*} prefix=${cur%%=*}= cur=${cur#*=}\n"
    "    fi\n"
    "    verb=${COMP_WORDS[1]}\n"
    "    option=$prev\n"
    "    [[ $key == -* ]] && option=$key key=\n"
    "    if ((COMP_CWORD == 1)); then\n"
    "        _bmuf_words \"$_bmuf_verbs --help --version\"\n"
    "        return\n"
    "    fi\n"
    "    if [[ $key == ?*.?* ]]; then\n"
    "        _bmuf_values\n"
    "        return\n"
    "    fi\n";

static void bash_setting(const char *section, const bm_option *o)
{
    printf("%s.%s= ", section, o->key);
}

static void bash_value(const char *section, const bm_option *o)
{
    kind k = kind_of_option(o);

    if (k == NOTHING)
        return;
    printf("        %s.%s) ", section, o->key);
    if (k == WORDS) {
        printf("_bmuf_words \"");
        print_values(o);
        printf("\"");
    } else {
        printf("_bmuf_files %s", k == FOLDERS ? "-d" : "-f");
    }
    printf(" ;;\n");
}

/* The command that completes a value. */
static void bash_action(const bm_verb *verb, const char *name, kind k)
{
    switch (k) {
    case NOTHING:
        printf(":");
        break;
    case FILES:
        printf("_bmuf_files -f");
        break;
    case FOLDERS:
        printf("_bmuf_files -d");
        break;
    case WORDS:
        printf("_bmuf_words \"");
        print_words(name);
        printf("\"");
        break;
    case SETTINGS:
        printf("_bmuf_settings \"$_bmuf_%s_settings\"",
               takes_pack_settings(verb) ? "pack" : "train");
        break;
    case VERBS:
        printf("_bmuf_words \"$_bmuf_verbs\"");
        break;
    }
}

static void bash_flags(const bm_verb *verb, const bm_flag *flags)
{
    for (const bm_flag *f = flags; f->name != NULL; f++) {
        if (f->value == NULL)
            continue;
        printf("        %s:--%s", verb->name, f->name);
        if (f->letter != 0)
            printf(" | %s:-%c", verb->name, f->letter);
        printf(") ");
        bash_action(verb, f->value, kind_of(f->value));
        printf("; return ;;\n");
    }
}

static void bash_names(const bm_flag *flags)
{
    for (const bm_flag *f = flags; f->name != NULL; f++)
        printf("--%s ", f->name);
}

static void bash_verb(const bm_verb *verb)
{
    printf("        %s)\n            if [[ $cur == -* ]]; then\n"
           "                _bmuf_words \"",
           verb->name);
    bash_names(verb->flags);
    bash_names(bm_common_flags);
    printf("--help\"\n            else\n                ");
    if (strcmp(verb->name, "options") == 0) {
        printf("_bmuf_words \"");
        print_sections();
        printf("${_bmuf_train_settings//=/}\"");
    } else {
        bash_action(verb, verb->nouns, kind_of_nouns(verb));
    }
    printf("\n            fi ;;\n");
}

static void bash(void)
{
    const bm_verb *const *all = bm_verb_list();

    printf("%s_bmuf_verbs=\"", bash_head);
    print_verbs();
    printf("\"\n_bmuf_train_settings=\"");
    each_setting(false, bash_setting);
    printf("\"\n_bmuf_pack_settings=\"");
    each_setting(true, bash_setting);
    printf("\"\n\n_bmuf_values()\n{\n    case $key in\n");
    each_setting(false, bash_value);
    each_setting(true, bash_value);
    printf("    esac\n}\n\n%s    case $verb:$option in\n", bash_body);
    for (size_t i = 0; all[i] != NULL; i++) {
        bash_flags(all[i], all[i]->flags);
        bash_flags(all[i], bm_common_flags);
    }
    printf("    esac\n    case $verb in\n");
    for (size_t i = 0; all[i] != NULL; i++)
        bash_verb(all[i]);
    printf("    esac\n}\n\ncomplete -F _bmuf bmuf\n");
}

/* ---- zsh ----------------------------------------------------------------- */

/* A help text within '[..]' of _arguments, or within 'name:..' of _describe. */
static void zsh_text(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '\'')
            printf("'\\''");
        else
            printf("%s%c", strchr("[]:\\", *text) != NULL ? "\\" : "", *text);
}

static void zsh_setting(const char *section, const bm_option *o)
{
    printf("        %s.%s\n", section, o->key);
}

static void zsh_value(const char *section, const bm_option *o)
{
    kind k = kind_of_option(o);

    if (k == NOTHING)
        return;
    printf("        %s.%s) ", section, o->key);
    if (k == WORDS) {
        printf("compadd ");
        print_values(o);
    } else {
        printf("_files%s", k == FOLDERS ? " -/" : "");
    }
    printf(" ;;\n");
}

static void zsh_settings(const char *name, bool pack)
{
    printf("_bmuf_%s_settings()\n{\n    local -a keys\n"
           "    if compset -P '*='; then\n"
           "        case ${${IPREFIX%%=}##*=} in\n",
           name);
    each_setting(pack, zsh_value);
    printf("        esac\n        return\n    fi\n    keys=(\n");
    each_setting(pack, zsh_setting);
    printf("    )\n    compadd -S = -a keys\n}\n\n");
}

static void zsh_action(const bm_verb *verb, const char *name, kind k)
{
    switch (k) {
    case NOTHING:
        printf(" ");
        break;
    case FILES:
        printf("_files");
        break;
    case FOLDERS:
        printf("_files -/");
        break;
    case WORDS:
        printf("(");
        print_words(name);
        printf(")");
        break;
    case SETTINGS:
        printf("_bmuf_%s_settings",
               takes_pack_settings(verb) ? "pack" : "train");
        break;
    case VERBS:
        printf("(");
        print_verbs();
        printf(")");
        break;
    }
}

static void zsh_flags(const bm_verb *verb, const bm_flag *flags)
{
    for (const bm_flag *f = flags; f->name != NULL; f++) {
        const char *equals = f->value != NULL ? "=" : "";

        printf(" \\\n                ");
        if (f->letter != 0)
            printf("'(-%c --%s)'{-%c,--%s%s}'[", f->letter, f->name, f->letter,
                   f->name, equals);
        else
            printf("'%s--%s%s[", f->many ? "*" : "", f->name, equals);
        zsh_text(f->help);
        printf("]");
        if (f->value != NULL) {
            printf(":");
            zsh_text(f->value);
            printf(":");
            zsh_action(verb, f->value, kind_of(f->value));
        }
        printf("'");
    }
}

static void zsh_nouns(const bm_verb *verb)
{
    if (verb->most == 0)
        return;
    printf(" \\\n                '*:");
    zsh_text(verb->nouns);
    printf(":");
    if (strcmp(verb->name, "options") == 0) {
        printf("(");
        print_sections();
        printf(")");
    } else {
        zsh_action(verb, verb->nouns, kind_of_nouns(verb));
    }
    printf("'");
}

static void zsh(void)
{
    const bm_verb *const *all = bm_verb_list();

    printf("#compdef bmuf\n"
           "# Completion of bmuf for zsh; made by bmuf completions zsh.\n\n");
    zsh_settings("train", false);
    zsh_settings("pack", true);
    printf("_bmuf()\n{\n    local verb\n    local -a verbs\n"
           "    if ((CURRENT == 2)); then\n        verbs=(\n");
    for (size_t i = 0; all[i] != NULL; i++) {
        printf("            '%s:", all[i]->name);
        zsh_text(all[i]->help);
        printf("'\n");
    }
    printf("        )\n        _describe verb verbs\n        return\n    fi\n"
           "    verb=$words[2]\n    shift words\n    ((CURRENT--))\n"
           "    case $verb in\n");
    for (size_t i = 0; all[i] != NULL; i++) {
        printf("        %s)\n            _arguments -s", all[i]->name);
        zsh_flags(all[i], all[i]->flags);
        zsh_flags(all[i], bm_common_flags);
        zsh_nouns(all[i]);
        printf(" ;;\n");
    }
    printf("    esac\n}\n\n_bmuf \"$@\"\n");
}

/* ---- the verb ------------------------------------------------------------ */

static bm_status completions(const bm_arguments *a)
{
    const char *shell = a->nouns[0];

    if (strcmp(shell, "bash") == 0)
        bash();
    else if (strcmp(shell, "zsh") == 0)
        zsh();
    else
        return BM_FAIL(BM_ERR_ARG, "completions: '%s' is not bash or zsh",
                       shell);
    return BM_OK;
}

static const bm_flag flags[] = {{0}};

const bm_verb bm_verb_completions = {
    .name = "completions",
    .nouns = "bash|zsh",
    .help = "print a script that completes bmuf's words in a shell",
    .text = "  source <(bmuf completions bash)\n"
            "  bmuf completions zsh >~/.zfunc/_bmuf\n\n"
            "cmake --install installs both.\n",
    .flags = flags,
    .least = 1,
    .most = 1,
    .run = completions,
};
