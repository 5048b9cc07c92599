// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "handles.hpp"
#include "usdt/question_text.hpp"

struct usdtc_question {
  usdt::QuestionText text = usdt::QuestionText();
};
