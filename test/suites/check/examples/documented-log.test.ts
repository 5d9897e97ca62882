import { expect, test } from "vitest";
import { openMemoryStore } from "../../../../src/stores/index.ts";
import { exchangeHttp1 } from "@protoport/testing/http";
import { openLogLines } from "@protoport/testing/process";
import { blocksRunBy } from "../../../support/docs/page-blocks.ts";
import { bearer, startPlantServer, tokens } from "../../../support/server/plant-server.ts";

// docs/how-to/authentication.md shows the log line for a call with an unknown token.

/** Fields that differ between calls and verifiers. */
const ownEach = ["time", "requestId", "durationMs", "reason"] as const;

function comparable(line: object): unknown {
  return { ...line, ...Object.fromEntries(ownEach.map((name) => [name, name in line ? "own" : "missing"])) };
}

const blocks = blocksRunBy("test/suites/check/examples/documented-log.test.ts");
test.each(blocks)("the line documented at line $line in $page is logged", async ({ text }) => {
  const { log, lines } = openLogLines("info");
  await using server = await startPlantServer({ log, store: openMemoryStore() });
  const header = [bearer(tokens.unknown)];
  await exchangeHttp1(server.address, { httpMethod: "DELETE", path: "/plants/42", header });
  const [call = {}] = lines().filter(({ msg }) => msg === "call");
  const shown: object = JSON.parse(text);
  expect(comparable(call)).toEqual(comparable(shown));
  expect(Object.keys(call)).toEqual(Object.keys(shown));
});
