/*
 * grammar.c - the rules, one row each, and drawing by them.
 *
 * A rule has alternatives, separated by '|', one of which is drawn; all are
 * equally likely, so one that is given twice is twice as likely. An alternative
 * is a list of words and of names of rules, which begin with '$'. `lists` are
 * rules whose alternatives are single words; of more than MOST_EQUAL words the
 * first are likelier, as in all languages. $spelled is the last name of the
 * text, letter by letter.
 */
#include "tools/speech/grammar.h"

#include "core/status.h"
#include "core/text/words.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct rule {
    const char *name, *text;
} rule;

static const rule rules[] = {
    {"everything", "$sentences|$sentences|$sentences|$numbers|$spelling"},
    {"digits", "$digit|$digit $digit|$digit $digit $digit|"
               "$digit $digit $digit $digit|"
               "$digit $digit $digit $digit $digit|"
               "$digit $digit $digit $digit $digit $digit|"
               "$digit $digit $digit $digit $digit $digit $digit"},

    {"numbers", "$count|$date|$time|$money|$phone|$street|$measure"},
    {"count", "$number $things|$ordinal $place|room $below_thousand|"
              "page $number"},
    {"date", "$weekday the $ordinal of $month|$month the $ordinal $year|"
             "the $ordinal of $month $year"},
    {"year", "nineteen $below_hundred|two thousand and $small|"
             "eighteen $below_hundred"},
    {"time", "half past $hour|quarter past $hour|$ty minutes past $hour|"
             "$hour thirty in the $daytime|$hour fifteen|$hour forty five"},
    {"hour", "$small|ten|eleven|twelve"},
    {"money", "$below_hundred $currency|$below_thousand $currency and "
              "$below_hundred cents|$number $currency"},
    {"phone", "$digit $digit $digit $digit $digit $digit $digit|"
              "number $digit $digit double $digit $digit $digit"},
    {"street", "$below_thousand $surname street|$below_hundred $tree avenue "
               "$city"},
    {"measure", "$below_thousand $unit|$small point $digit $digit $unit|"
                "minus $below_hundred degrees"},
    {"number", "$below_thousand|$below_thousand|$below_hundred thousand|"
               "$below_hundred thousand $below_thousand|"
               "$small million $below_thousand thousand"},
    {"below_thousand", "$below_hundred|$small hundred|"
                       "$small hundred and $below_hundred|"
                       "$small hundred and $below_hundred"},
    {"below_hundred", "$small|$teen|$ty|$ty $small|$ty $small|$ty $small"},

    {"spelling", "$name spelled $spelled|$name $spelled|"
                 "my name is $name $spelled|code $code|flight $letter $letter "
                 "$below_thousand|plate $letter $letter $digit $digit $digit|"
                 "$city $spelled"},
    {"code", "$letter $digit $letter $digit|$letter $letter $letter $letter|"
             "$letter $letter $digit $digit $digit $letter"},
    {"name", "$first|$surname|$first $surname"},

    {"sentences", "$statement|$statement|$statement|$command|$question|$news"},
    {"statement", "$someone $did $something|$someone $did $something $where|"
                  "$when $someone $did $something|"
                  "$someone $went $where $when|"
                  "$something was $quality $and $quality|"
                  "$someone $said that $something was $quality|"
                  "$someone $did $something $and $did $something"},
    {"command", "$please $do $something $where|$do $something $and $do "
                "$something|never $do $something $when|turn on the $thing "
                "$where|set the alarm at $hour $when"},
    {"question", "did $someone $do $something $when|where is $something|"
                 "when will $someone $do $something|how many $things stand "
                 "$where|who $did $something $where"},
    {"news", "$weekday in $city gets $weather $and $weather|"
             "flights from $city into $city were $delayed|"
             "the price of $stuff rose $below_hundred percent in $month"},
    {"someone", "$first|$first|the $person|the $quality $person|"
                "$first and $first|my $relative"},
    {"something", "the $thing|the $quality $thing|$several $things|"
                  "some $stuff|the $colour $thing|the $person of $city|"
                  "$several $colour $things"},
    {"where", "$near the $place|$near the $quality $place|in $city"},
    {"when", "yesterday|tomorrow|on $weekday|in $month|every $daytime|"
             "after $season|last $weekday|at midnight"},
    {"and", "and|but|then"},
};

static const rule lists[] = {
    {"digit", "zero one two three four five six seven eight nine"},
    {"small", "one two three four five six seven eight nine"},
    {"several", "two three four five six seven eight nine"},
    {"teen", "ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
             "eighteen nineteen"},
    {"ty", "twenty thirty forty fifty sixty seventy eighty ninety"},
    {"ordinal", "first second third fourth fifth sixth seventh eighth ninth "
                "tenth eleventh twelfth thirteenth twentieth thirtieth"},
    {"letter", "a b c d e f g h i j k l m n o p q r s t u v w x y z"},
    {"weekday", "monday tuesday wednesday thursday friday saturday sunday"},
    {"month", "january february march april june july august september "
              "october november december"},
    {"season", "spring summer autumn winter easter christmas"},
    {"daytime", "morning afternoon evening night"},
    {"currency", "dollars euros francs rubles pesos"},
    {"unit", "metres miles inches litres grams tons hectares seconds"},
    {"first",
     "anna oliver emma lucas sophie daniel martha victor helen samuel alice "
     "robert clara thomas julia peter laura george rachel simon nancy patrick "
     "monica edward sarah francis diana kevin olga walter teresa philip "
     "barbara marcus susan gregory linda albert veronica douglas"},
    {"surname",
     "miller jackson thompson garcia fischer novak peterson kowalski andrews "
     "wilson taylor morgan campbell henderson robinson murphy sullivan "
     "wagner schneider larsen olsen rossi ferrari dubois fontaine tanaka "
     "suzuki nakamura patel gupta ivanov petrov lopez fernandez santos almeida "
     "johansson lindberg hoffman weber"},
    {"city",
     "london paris berlin madrid vienna lisbon dublin oslo helsinki warsaw "
     "budapest athens cairo nairobi lagos delhi bangkok beijing tokyo sydney "
     "boston chicago dallas denver houston seattle toronto montreal havana "
     "lima"},
    {"tree", "oak maple willow cedar chestnut birch poplar hazel"},
    {"colour", "black white yellow green brown purple orange silver golden "
               "scarlet pink violet"},
    {"quality",
     "old young tall heavy quiet noisy narrow empty hungry clever gentle "
     "famous foreign simple strange modern broken wooden plastic electric "
     "dangerous beautiful enormous ancient invisible comfortable popular "
     "private public silent sudden frozen honest curious stubborn careful "
     "expensive cheap bitter delicious fresh dusty smooth rough elegant ugly "
     "useful royal local"},
    {"person",
     "teacher doctor farmer soldier lawyer captain pilot painter singer "
     "baker butcher carpenter engineer scientist student professor president "
     "minister mayor judge nurse dentist waiter driver sailor fisherman "
     "poet dancer actor journalist musician stranger neighbour traveller "
     "hunter merchant plumber gardener librarian customer"},
    {"relative", "mother father brother sister uncle cousin grandfather "
                 "husband daughter nephew"},
    {"thing",
     "table window bottle hammer ladder basket blanket candle carpet "
     "mirror pencil pillow shovel ticket umbrella wallet bicycle tractor "
     "engine helicopter rocket camera computer telephone television radio "
     "printer keyboard battery guitar piano violin trumpet drum letterbox "
     "newspaper magazine dictionary novel picture statue lamp kettle oven "
     "fridge saucepan fork knife spoon dish necklace bracelet jacket sweater "
     "trousers helmet glove bucket barrel chimney curtain lantern"},
    {"things",
     "apples bananas cherries lemons potatoes tomatoes onions carrots "
     "sandwiches biscuits cakes horses donkeys chickens rabbits squirrels "
     "elephants tigers monkeys dolphins spiders butterflies pigeons eagles "
     "wolves foxes camels turtles books coins buttons stamps envelopes "
     "photographs cigarettes bricks planks chairs boxes parcels"},
    {"stuff", "butter sugar pepper vinegar honey mustard coffee chocolate "
              "cotton copper petrol concrete plaster paper glass rubber "
              "leather timber gravel medicine"},
    {"place",
     "bridge castle church factory garden harbour hospital island kitchen "
     "library market museum office palace prison restaurant river school "
     "station theatre tower university village cathedral airport stadium "
     "mountain forest valley desert lighthouse warehouse cottage bakery "
     "laboratory cinema fountain monument tunnel canal"},
    {"near", "near behind under above beside inside outside across around "
             "beyond opposite"},
    {"did",
     "bought carried cleaned collected destroyed discovered dropped finished "
     "forgot gathered ignored imported invented lifted measured noticed "
     "opened ordered painted polished promised protected published pushed "
     "received refused remembered repaired replaced returned stole studied "
     "touched translated wanted washed watched admired described"},
    {"do", "bring carry clean collect destroy discover drop finish forget "
           "gather ignore lift measure open order paint polish protect push "
           "remember repair replace return study touch translate wash watch "
           "describe"},
    {"went", "walked travelled waited arrived slept danced laughed worked "
             "stayed disappeared jumped listened"},
    {"said", "believed explained insisted admitted thought whispered "
             "complained agreed"},
    {"please", "please kindly quickly always"},
    {"weather", "sunny cloudy rainy windy stormy foggy snowy warm cold humid"},
    {"delayed", "delayed cancelled diverted punctual"},
};

static const char spelled[] = "spelled";
enum { DEEPEST = 16 }; /* rules within rules */
enum { MOST_EQUAL = 26, FLAT = 5 };

static const char *find(const rule *table, size_t n, const char *name,
                        size_t length)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(table[i].name) == length &&
            strncmp(table[i].name, name, length) == 0)
            return table[i].text;
    return NULL;
}

/* The text of a rule; *separator: what stands between its alternatives. */
static const char *find_rule(const char *name, size_t length, char *separator)
{
    const char *text =
        find(rules, sizeof rules / sizeof rules[0], name, length);

    *separator = '|';
    if (text == NULL) {
        text = find(lists, sizeof lists / sizeof lists[0], name, length);
        *separator = ' ';
    }
    BM_ASSERT(text != NULL);
    return text;
}

/* ---- drawing ------------------------------------------------------------- */

typedef struct drawing {
    bm_rng *rng;
    char *text; /* [BM_LONGEST_TEXT] */
    size_t n;
    const char *name; /* the last that was drawn, and its length */
    size_t length;
} drawing;

static void add(drawing *d, const char *word, size_t length)
{
    BM_ASSERT(d->n + length + 2 <= BM_LONGEST_TEXT);
    if (d->n > 0)
        d->text[d->n++] = ' ';
    memcpy(d->text + d->n, word, length);
    d->n += length;
    d->text[d->n] = '\0';
}

static bool is_name(const char *name, size_t length)
{
    return find(lists, sizeof lists / sizeof lists[0], name, length) != NULL &&
           (strncmp(name, "first", length) == 0 ||
            strncmp(name, "surname", length) == 0 ||
            strncmp(name, "city", length) == 0);
}

/* One of n words: number i with a probability of about 1 / (i + FLAT). */
static size_t draw_word(bm_rng *rng, size_t n)
{
    double u = bm_rng_uniform(rng);

    return (size_t)(FLAT * (pow(((double)n + FLAT) / FLAT, u) - 1));
}

/* One of the alternatives, and its length. */
static const char *choose(bm_rng *rng, const char *text, char separator,
                          size_t *length)
{
    const char stop[] = {separator, '\0'};
    size_t n = 1, k;

    for (const char *at = text; *at != '\0'; at++)
        n += *at == separator;
    k = separator == ' ' && n > MOST_EQUAL ? draw_word(rng, n)
                                           : (size_t)bm_rng_below(rng, n);
    for (; k > 0; k--)
        text += strcspn(text, stop) + 1;
    *length = strcspn(text, stop);
    return text;
}

/* What is left of an alternative that was chosen. */
typedef struct rest {
    const char *at, *end;
} rest;

static rest choose_of(drawing *d, const char *name, size_t length)
{
    char separator;
    const char *text = find_rule(name, length, &separator);
    size_t n = 0;
    const char *at = choose(d->rng, text, separator, &n);

    if (is_name(name, length)) {
        d->name = at;
        d->length = n;
    }
    return (rest){at, at + n};
}

static bool is_spelled(const char *name, size_t length)
{
    return length == strlen(spelled) && strncmp(name, spelled, length) == 0;
}

/* Adds what is drawn by a rule. The table has no rule that leads to itself. */
static void draw(drawing *d, const char *language)
{
    rest stack[DEEPEST] = {choose_of(d, language, strlen(language))};
    size_t depth = 1;

    while (depth > 0) {
        rest *r = &stack[depth - 1];
        const char *word = r->at;
        size_t n = strcspn(word, " |");

        if (word >= r->end) {
            depth--;
            continue;
        }
        r->at += n + (word + n < r->end);
        if (*word != '$') {
            add(d, word, n);
        } else if (is_spelled(word + 1, n - 1)) {
            for (size_t i = 0; i < d->length; i++)
                add(d, d->name + i, 1);
        } else {
            BM_ASSERT(depth < DEEPEST);
            stack[depth++] = choose_of(d, word + 1, n - 1);
        }
    }
}

void bm_grammar_draw(const char *language, bm_rng *rng,
                     char text[BM_LONGEST_TEXT])
{
    drawing d = {.rng = rng, .text = text};

    text[0] = '\0';
    draw(&d, language);
}

/* ---- the vocabulary ------------------------------------------------------ */

void bm_grammar_words(const char *language,
                      void (*visit)(void *self, const char *word), void *self)
{
    const char *stack[DEEPEST]; /* what is left of the rules on the way */
    char separator, word[64];
    size_t depth = 0;

    BM_ASSERT(bm_is_word_of(language, BM_LANGUAGES));
    stack[depth++] = find_rule(language, strlen(language), &separator);
    while (depth > 0) {
        const char *at = stack[depth - 1];
        size_t n = strcspn(at, " |");

        if (*at == '\0') {
            depth--;
            continue;
        }
        BM_ASSERT(n > 0 && n < sizeof word && depth < DEEPEST);
        stack[depth - 1] = at + n + (at[n] != '\0');
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (*at != '$')
            visit(self, word);
        else
            stack[depth++] = is_spelled(word + 1, n - 1)
                                 ? find_rule("letter", 6, &separator)
                                 : find_rule(word + 1, n - 1, &separator);
    }
}
