import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { tokenLimitChars } from "../../../src/bearer-token.ts";
import { providerResponseLimitBytes } from "../../../src/fetch-text.ts";
import {
  activeTtlMs,
  maxFailures,
  inactiveTtlMs,
  maxInFlight,
  unhealthyForMs,
} from "../../../src/introspection/introspection-verifier.ts";
import { introspectionTimeoutMs } from "../../../src/introspection/open-introspection-verifier.ts";
import { defaultKeyTiming } from "../../../src/jwt/fetched-keys.ts";

const file = new URL("../../../../docs/reference/tokens.md", import.meta.url);
const page = readFileSync(file, "utf8").replaceAll("\n", " ");
const { refreshMs, usableMs, unknownKeyGapMs, coolDownMs, fetchMs, backOffMs, maxBackOffMs } = defaultKeyTiming;

test.each([
  `every ${refreshMs / 60_000} minutes, in the background`,
  `within ${fetchMs / 1000} seconds and ${providerResponseLimitBytes / 1024} KiB, without redirects`,
  `after ${backOffMs / 1000} s, ${(2 * backOffMs) / 1000} s, ${(4 * backOffMs) / 1000} s … ${maxBackOffMs / 1000} s`,
  `${usableMs / 3_600_000} hours after the last successful fetch`,
  `no fetch in the second (${unknownKeyGapMs / 1000} s) after another`,
  `one in ${coolDownMs / 1000} seconds for the same`,
  `several tokens, and more than ${tokenLimitChars / 1024} KiB are malformed`,
  `is cached for ${activeTtlMs / 1000} seconds, or until an earlier \`exp\``,
  `with \`active: false\` is cached for ${inactiveTtlMs / 1000} seconds`,
  `for ${maxFailures} different tokens in a row`,
  `or ${unhealthyForMs / 1000} seconds have passed`,
  `${maxInFlight} requests are open at a time, for ${introspectionTimeoutMs / 1000} seconds each`,
])('docs/reference/tokens.md contains "%s"', (sentence) => expect(page).toContain(sentence));
