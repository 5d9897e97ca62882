import { hash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TokenVerifier } from "@protoport/auth";
import { createPlantTools } from "../../src/server/plant-tools.ts";
import { openSqliteStore } from "../../src/stores/index.ts";
// oxfmt-ignore
import { createTempFolder, type Field, KeptConnections, openLogLines, type Wire, wiresWithTools
} from "@protoport/testing";
import { deletePlantRequest } from "../support/plants/delete-plant.ts";
import { readSqlite } from "../support/plants/sqlite-file.ts";
import { bearer, startPlantServer, type TestPlantServer } from "../support/server/plant-server.ts";
import { expectedResponse, actualResponse, type Want } from "./expected-response.ts";

/** A verifier whose tokens are the caller's name, preceded by the issuer if the caller has one. */
const verifier: TokenVerifier = {
  verify: ({ text }) => {
    const [subject = "", issuer] = text.split("~").toReversed();
    return { kind: "principal", subject, issuer, scopes: "all" };
  },
};
const ann = bearer("ann-0123456789");
const bob = bearer("bob-0123456789");
const annOfOne = bearer("one~ann-0123456789");
const annOfTwo = bearer("two~ann-0123456789");
const ok: Want = { code: "ok" };
const reused: Want = { code: "already_exists", message: "the idempotency key belongs to another deletion" };
const invalid: Want = {
  code: "invalid_argument",
  message: "the Idempotency-Key header must be a string of 1 to 128 characters in double quotes",
};
const notFound = (id: bigint): Want => ({ code: "not_found", message: `plant ${String(id)} not found` });

describe("a server", () => {
  const folder = createTempFolder();
  const file = folder.file("plants.db");
  const log = openLogLines("debug");
  let server: TestPlantServer;
  beforeAll(async () => {
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 100n } });
    server = await startPlantServer({ store, verifier, tools: createPlantTools(), log: log.log });
  });
  const connections = new KeptConnections();
  afterAll(async () => {
    connections[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  const expectDelete = async (wire: Wire, id: bigint, want: Want, ...header: readonly Field[]): Promise<void> => {
    const request = deletePlantRequest(wire.format, id, header);
    const response = await connections.exchange(server.address, wire.httpVersion, request);
    expect(actualResponse(wire.format, response)).toStrictEqual(expectedResponse(wire.format, want));
  };

  const keysOf = (...plants: readonly bigint[]): unknown[] => {
    const sql = `SELECT keys.idempotency_key AS key FROM deletions LEFT JOIN idempotency_keys AS keys USING (seq)
                 WHERE plant_id IN (${plants.join()}) ORDER BY seq`;
    return readSqlite(file, sql).map(({ key }) => key);
  };

  const testCases = wiresWithTools.map((wire, i) => ({ wire, plant: BigInt(2 * i + 1) }));

  test.each(testCases)("over $wire.name repeats the first response to a repeated call", async ({ wire, plant }) => {
    const key: Field = ["idempotency-key", `"key of \\"${plant}\\""`];
    await expectDelete(wire, plant, invalid, ann, ["idempotency-key", ""]);
    await expectDelete(wire, plant, ok, ann, key);
    await expectDelete(wire, plant, ok, ann, key);
    await expectDelete(wire, plant, notFound(plant), ann);
    await expectDelete(wire, plant + 1n, reused, ann, key);
    await expectDelete(wire, plant, reused, bob, key);
    await expectDelete(wire, plant + 1n, ok, bob);
    expect(log.text()).not.toContain("key of");
    expect(keysOf(plant, plant + 1n)).toEqual([`:key of "${plant}"`, null]);
  });

  test("recognises a repeated call over another protocol", async () => {
    const key: Field = ["idempotency-key", '"shared"'];
    for (const { wire } of testCases) await expectDelete(wire, 100n, ok, ann, key);
  });

  test("keeps idempotency keys from different issuers apart", async () => {
    const key: Field = ["idempotency-key", '"of an issuer"'];
    const [wire] = testCases.map((testCase) => testCase.wire);
    if (wire === undefined) throw new Error("there is no wire");
    await expectDelete(wire, 97n, ok, annOfOne, key);
    await expectDelete(wire, 97n, notFound(97n), annOfTwo, key);
    await expectDelete(wire, 97n, notFound(97n), ann, key);
    await expectDelete(wire, 98n, ok, annOfTwo, key);
    await expectDelete(wire, 99n, ok, ann, key);
    await expectDelete(wire, 97n, ok, annOfOne, key);
    await expectDelete(wire, 98n, reused, annOfOne, key);
    expect(keysOf(97n, 99n)).toEqual([`${hash("sha256", "one", "base64url")}:of an issuer`, ":of an issuer"]);
  });
});
