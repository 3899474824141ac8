/* Stands in for libnvidia-ml.so.1. The file that SCALETEST_NVML names says what every function answers, one a line:
 * DEVICE FUNCTION RESULT [VALUE [VALUE]], as in "0 utilization 0 87 12"; DEVICE is - for functions without one. What is
 * not in it is not supported (3). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long wide;
enum { NOT_SUPPORTED = 3, NOT_FOUND = 6, MOST = 8 };
struct memory { wide total, free, used; };
struct rates { unsigned gpu, memory; };
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char address[32]; };
/* handles point here */
static char places[MOST];

static int answer(const char *device, const char *function, char *first, wide *second)
{
    char line[200], name[20], called[60], text[60];
    int result = NOT_SUPPORTED, read, fields;
    FILE *file = fopen(getenv("SCALETEST_NVML"), "r");
    while (file && fgets(line, sizeof line, file)) {
        strcpy(text, "0");
        *second = 0;
        fields = sscanf(line, "%19s %59s %d %59s %llu", name, called, &read, text, second);
        if (fields >= 3 && !strcmp(name, device) && !strcmp(called, function)) {
            result = read;
            strcpy(first, text);
            break;
        }
    }
    if (file)
        fclose(file);
    return result;
}

static int ask(void *handle, const char *function, wide *first, wide *second)
{
    char device[20], text[60] = "0";
    sprintf(device, "%d", (int)((char *)handle - places));
    int result = answer(device, function, text, second);
    *first = strtoull(text, NULL, 10);
    return result;
}

static int ask_number(void *handle, const char *function, unsigned *value)
{
    wide first, second;
    int result = ask(handle, function, &first, &second);
    *value = (unsigned)first;
    return result;
}

int nvmlInitWithFlags(unsigned flags)
{
    char text[60];
    wide second;
    return answer("-", "init", text, &second);
}

int nvmlShutdown(void) { return 0; }

const char *nvmlErrorString(int result)
{
    return result == 15 ? "GPU is lost" : "another error";
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    char text[60] = "0";
    wide second;
    int result = answer("-", "count", text, &second);
    *count = (unsigned)atoi(text);
    return result;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle)
{
    wide first, second;
    *handle = &places[index % MOST];
    return ask(*handle, "handle", &first, &second);
}

int nvmlDeviceGetPciInfo_v3(void *handle, struct pci *pci)
{
    char device[20], text[60];
    wide second;
    sprintf(device, "%d", (int)((char *)handle - places));
    int result = answer(device, "pci", text, &second);
    if (!result)
        snprintf(pci->address, sizeof pci->address, "%s", text);
    return result;
}

int nvmlDeviceGetUtilizationRates(void *handle, struct rates *rates)
{
    wide gpu, memory;
    int result = ask(handle, "utilization", &gpu, &memory);
    *rates = (struct rates){(unsigned)gpu, (unsigned)memory};
    return result;
}

int nvmlDeviceGetMemoryInfo(void *handle, struct memory *memory)
{
    wide used, total;
    int result = ask(handle, "memory", &used, &total);
    *memory = (struct memory){total, total - used, used};
    return result;
}

int nvmlDeviceGetTotalEnergyConsumption(void *handle, wide *millijoules)
{
    wide second;
    return ask(handle, "energy", millijoules, &second);
}

int nvmlDeviceGetCurrentClocksEventReasons(void *handle, wide *reasons)
{
    wide second;
    return ask(handle, "event_reasons", reasons, &second);
}

int nvmlDeviceGetEncoderUtilization(void *handle, unsigned *percent, unsigned *period)
{
    *period = 1000000;
    return ask_number(handle, "encoder", percent);
}

int nvmlDeviceGetDecoderUtilization(void *handle, unsigned *percent, unsigned *period)
{
    *period = 1000000;
    return ask_number(handle, "decoder", percent);
}

int nvmlDeviceGetMinorNumber(void *handle, unsigned *number) { return ask_number(handle, "minor", number); }

int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts) { return ask_number(handle, "power", milliwatts); }

int nvmlDeviceGetClockInfo(void *handle, unsigned kind, unsigned *mhz) { return ask_number(handle, "clock", mhz); }

int nvmlDeviceGetMaxClockInfo(void *handle, unsigned kind, unsigned *mhz) { return ask_number(handle, "max_clock", mhz); }

int nvmlDeviceGetTemperature(void *handle, unsigned sensor, unsigned *degrees)
{
    return ask_number(handle, "temperature", degrees);
}
