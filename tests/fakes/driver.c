/* driver.c - what comes with a device. */
extern const int fake_device;
const int fake_device = 1;
