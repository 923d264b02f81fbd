/* bare.c - a library that is not a plugin. */
extern const int fake_nothing;
const int fake_nothing = 0;
