/* arithmetic.c - a library that the plugin of whole.c calls. */
int fake_two(void);

int fake_two(void)
{
    return 2;
}
