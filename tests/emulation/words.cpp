/*
 * words.cpp - words that blocks tell each other in global memory. What a warp
 * tells from one __syncwarp to the next arrives at once, some time after what
 * it has told before: that is certain of words in one place.
 */
#include "tests/emulation/fibers.h"
#include "tests/emulation/sm90.h"

#include <deque>
#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

namespace
{
struct word {
    void *to;
    unsigned char data[16];
    size_t size;
};

struct batch {
    std::vector<word> words;
    unsigned rounds; /* until it arrives; 0: when nothing else moves */
};

struct speaker { /* a warp */
    std::vector<word> told;
    std::deque<batch> under_way;
};

std::map<unsigned, speaker> speakers;

speaker &own()
{
    return speakers[bm_now.cluster * 32 + bm_now.rank / 32];
}

void check(const void *x, size_t size)
{
    if ((uintptr_t)x % size != 0) {
        fprintf(stderr, "a kernel's error: words are not aligned\n");
        abort();
    }
}

void tell(void *x, const void *v, size_t size)
{
    word w = {x, {}, size};

    check(x, size);
    memcpy(w.data, v, size);
    own().told.push_back(w);
}

void arrive(const std::vector<word> &words)
{
    for (const word &w : words)
        memcpy(w.to, w.data, w.size);
}
} // namespace

void bm_tell8(void *x, uint2 v)
{
    tell(x, &v, sizeof v);
}

void bm_tell16(void *x, uint4 v)
{
    tell(x, &v, sizeof v);
}

uint2 bm_hear8(const void *x)
{
    uint2 v;

    check(x, sizeof v);
    memcpy(&v, x, sizeof v);
    return v;
}

uint4 bm_hear16(const void *x)
{
    uint4 v;

    check(x, sizeof v);
    memcpy(&v, x, sizeof v);
    return v;
}

void bm_hear_later(const void *words, int n, int bit)
{
    const uint32_t *x = (const uint32_t *)words;

    if (bm_now.rank % 32 == 0)
        bm_fiber_wait([=] {
            for (int i = 0; i < n; i++)
                if (bit < 0 ? x[i] == 0 : (int)(x[i] & 1) != bit)
                    return false;
            return true;
        });
    __syncwarp();
}

void bm_words_go()
{
    speaker &s = own();

    if (s.told.empty())
        return;
    s.under_way.push_back({std::move(s.told), bm_chance() % 4});
    s.told.clear();
}

bool bm_words_arrive(bool stuck)
{
    bool any = false;
    speaker *last = nullptr;

    for (auto &one : speakers) {
        speaker &s = one.second;
        bool now = stuck && bm_chance() % 4 == 0;

        if (s.under_way.empty())
            continue;
        last = &s;
        now = now || s.under_way.front().rounds == 1;
        if (s.under_way.front().rounds > 1)
            s.under_way.front().rounds--;
        if (!now)
            continue;
        arrive(s.under_way.front().words);
        s.under_way.pop_front();
        any = true;
    }
    if (stuck && !any && last != nullptr) {
        arrive(last->under_way.front().words);
        last->under_way.pop_front();
        any = true;
    }
    return any;
}

void bm_words_end()
{
    for (auto &s : speakers) {
        for (const batch &b : s.second.under_way)
            arrive(b.words);
        arrive(s.second.told);
    }
    speakers.clear();
}
