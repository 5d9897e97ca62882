import { expect, test } from "vitest";
import * as upstreams from "../../../../proxy/src/upstreams/upstream-limits.ts";
import { readPage } from "../../../support/docs/page-blocks.ts";

const page = readPage("protoport/docs/how-to/clients.md").replaceAll("\n", " ");
const { callsPerConnection, additionalIdleTimeoutMs, waitingCalls, queueTimeoutMs } = upstreams.upstreamLimits;

test.each([
  `looked up every ${upstreams.defaultResolveEveryMs / 1_000} seconds`,
  `opens up to ${upstreams.connectionsDefault} connections to each server`,
  `at most ${callsPerConnection.toLocaleString("en")} calls on each`,
  `closed after ${additionalIdleTimeoutMs / 1_000} s without a call`,
  `up to ${waitingCalls.toLocaleString("en")} calls wait in a queue`,
  `after ${queueTimeoutMs / 1_000} s with no free stream`,
  `too many unsent bytes (${upstreams.upstreamLimits.queuedBytes / 2 ** 20} MiB)`,
  `the time for a connection (${upstreams.upstreamLimits.connectTimeoutMs / 1_000} s)`,
])('protoport/docs/how-to/clients.md has the default in "%s"', (part) => expect(page).toContain(part));
