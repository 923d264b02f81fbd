/* driver.c - the driver library that plugins look for. */
extern const int fake_device;
const int fake_device = 1;
