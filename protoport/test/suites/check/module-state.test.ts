import { expect, test } from "vitest";
import { assignedConstantsIn, moduleVariablesIn } from "../../../testing/src/module-state.ts";
import { protoportTree } from "../../support/source-files.ts";

const moduleVariables: Readonly<Record<string, readonly string[]>> = {
  "gateway/http/exchange/buffered-body.ts": ["sharedBlock", "sharedBytes"],
  "gateway/engine/http-server.ts": ["dateSecond", "date"],
  "grpc-handlers/calls/write-response.ts": ["keptWriter"],
  "gateway/protobuf/messages/codegen.ts": ["isAllowed"],
  "gateway/protocols/compression/decode-pieces.ts": ["reservedBytes"],
  "telemetry/logs/plain-lines.ts": ["timeMs", "timeText"],
};

/** Module constants to whose members a function assigns, by file. Caches whose comments state their size. */
const assignedConstants: Readonly<Record<string, readonly string[]>> = {
  "gateway/protobuf/messages/binary/binary-reader.ts": ["shortTexts"],
  "gateway/engine/http1/response-head.ts": ["statusLines"],
};

test("source files have no state in module variables", () => {
  for (const file of protoportTree.files) {
    const text = protoportTree.textOf(file);
    expect.soft(moduleVariablesIn(text), file).toEqual(moduleVariables[file] ?? []);
    expect.soft(assignedConstantsIn(text), file).toEqual(assignedConstants[file] ?? []);
  }
});
