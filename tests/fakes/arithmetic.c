/* arithmetic.c - a library that a plugin calls. */
int fake_two(void);

int fake_two(void)
{
    return 2;
}
