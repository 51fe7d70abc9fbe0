// The words of generated sources, for the emulator: those of plain C++, and the chip's own.
#pragma once
#include "plain_words.h"
