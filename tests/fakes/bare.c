/* bare.c - a library, but no plugin. */
extern const int fake_nothing;
const int fake_nothing = 0;
