/*
 * check_network.c - the network interfaces of a host, and latency and bandwidth
 * between each two ranks.
 *
 * In a round of the tournament each rank has one partner (circle method). Up to
 * FEW ranks the pairs of a round measure one after the other, more ranks at the
 * same time, so that the time grows with the number of ranks alone.
 */
#define _DEFAULT_SOURCE /* IFF_UP */
#include "cli/doctor/check.h"
#include "cli/doctor/links.h"
#include "comm/link_time.h"
#include "core/file/system_text.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 8 };

/* ---- interfaces ---------------------------------------------------------- */

static bool address_of(const struct ifaddrs *i, char *out, size_t room)
{
    const void *address = NULL;
    struct sockaddr_in six;

    if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET)
        return false;
    memcpy(&six, i->ifa_addr, sizeof six);
    address = &six.sin_addr;
    return inet_ntop(AF_INET, address, out, (socklen_t)room) != NULL;
}

static void add_interface(json_t *list, const struct ifaddrs *i,
                          const char *address)
{
    char path[300], speed[40] = "";
    json_t *o =
        json_pack("{s:s, s:s}", "name", i->ifa_name, "address", address);

    snprintf(path, sizeof path, "/sys/class/net/%s/speed", i->ifa_name);
    if (bm_system_text(path, speed, sizeof speed) &&
        strtol(speed, NULL, 10) > 0)
        json_object_set_new(o, "mbit_s", json_integer(strtol(speed, NULL, 10)));
    json_array_append_new(list, o);
}

static void host(bm_check_context *e)
{
    struct ifaddrs *all = NULL;
    json_t *list = json_array();
    char text[400] = "", address[64];

    if (getifaddrs(&all) != 0)
        all = NULL;
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        size_t length = strlen(text);

        if ((i->ifa_flags & IFF_UP) == 0 ||
            (i->ifa_flags & IFF_LOOPBACK) != 0 ||
            !address_of(i, address, sizeof address))
            continue;
        add_interface(list, i, address);
        snprintf(text + length, sizeof text - length, "%s%s %s",
                 length > 0 ? ", " : "", i->ifa_name, address);
    }
    if (all != NULL)
        freeifaddrs(all);
    json_object_set_new(e->facts, "interfaces", list);
    if (text[0] != '\0')
        bm_find(e, BM_FINE, "", "interfaces: %s", text);
    else
        bm_find(e, BM_DOUBTFUL, "bring one up: ip link set eth0 up, as root",
                "no network interface but loopback is up: no other host can be "
                "reached");
}

/* ---- links --------------------------------------------------------------- */

int bm_links_partner(int size, int rank, int round)
{
    int last = size % 2 == 0 ? size - 1 : size, other = 0;

    if (size < 2)
        return -1;
    if (rank == last)
        other = round;
    else if (rank == round)
        other = last;
    else
        other = (2 * round - rank + 2 * last) % last;
    return other < size ? other : -1;
}

static bm_status measure(bm_check_context *e, int other)
{
    bm_link_time time;
    json_t *links = json_object_get(e->facts, "links");
    int rank = bm_comm_rank(e->comm);

    snprintf(e->doing, sizeof e->doing,
             "messages between ranks %d and %d, which may be blocked by a "
             "firewall",
             rank < other ? rank : other, rank < other ? other : rank);
    BM_TRY(bm_link_measure(e->comm, other, 0, &time));
    if (rank < other)
        json_array_append_new(
            links, json_pack("{s:i, s:i, s:f, s:f, s:b}", "a", rank, "b", other,
                             "latency_us", 1e6 * time.latency_s, "gb_per_s",
                             1e-9 * time.bytes_per_s, "inside",
                             bm_comm_host(e->comm, rank) ==
                                 bm_comm_host(e->comm, other)));
    return BM_OK;
}

static bm_status together(bm_check_context *e)
{
    int rank = bm_comm_rank(e->comm), size = bm_comm_size(e->comm);
    bool in_turn = size <= FEW;

    json_object_set_new(e->facts, "links", json_array());
    for (int round = 0; round < size - 1 + size % 2; round++) {
        int other = bm_links_partner(size, rank, round);

        for (int first = 0; first < size; first++) {
            bool theirs = first == rank || first == other;

            if (in_turn && bm_links_partner(size, first, round) < first)
                continue; /* without a partner, or measured */
            if (other >= 0 && (in_turn ? theirs : first == 0))
                BM_TRY(measure(e, other));
            snprintf(e->doing, sizeof e->doing, "other ranks");
            BM_TRY(bm_comm_barrier(e->comm));
            if (!in_turn)
                break;
        }
    }
    return BM_OK;
}

static void compare(bm_check_context *e, const json_t *ranks)
{
    if (json_array_size(ranks) < 2)
        bm_find(e, BM_SKIPPED,
                "give --hosts a,b, or -n 2 for messages inside this host",
                "one rank: no link to measure");
    else
        bm_links_compare(e, ranks);
}

const bm_check bm_check_network = {
    .name = "network",
    .help = "interfaces; latency and bandwidth between each two ranks",
    .seconds = 120,
    .host = host,
    .together = together,
    .compare = compare,
};
