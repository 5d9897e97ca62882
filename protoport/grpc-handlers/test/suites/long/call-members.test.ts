import type { EventEmitter } from "node:events";
import { readFileSync } from "node:fs";
import { status } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { cases, members, say, unary } from "../../call-member-cases.ts";
import type { Callback, DuplexCall, Readable, Unary, Writable } from "../../call-member-cases.ts";
import { callGarden, servers } from "../../grpc-js-client.ts";

// Each case has the same outcome with grpc-js's own server and with a gateway, except for the listed deviations.

const readme = readFileSync(new URL("../../../README.md", import.meta.url), "utf8");
const [, section = ""] = readme.split("## Members of calls\n");
const rows = (section.split("\n## ")[0] ?? "").split("\n").filter((line) => line.startsWith("| `"));

test("the README lists all members of a call, and no others", () => {
  const cells = rows.map((row) => row.split("|")[1] ?? "");
  const documented = cells.flatMap((cell) => [...cell.matchAll(/`(for await|\w+)/g)].map(([, member = ""]) => member));
  expect([...new Set(documented)].toSorted()).toEqual(Object.keys(members).toSorted());
});

test("each member of a call has a test case", () =>
  expect([...new Set(cases.flatMap(({ shows }) => shows))].toSorted()).toEqual(Object.keys(members).toSorted()));

describe.each(["grpc-js", "gateway"] as const)("a call on the %s server", (name) => {
  test.each(cases)("$name", async ({ handlers, call, outcome, deviation }) => {
    await using server = await servers[name](handlers);
    const want = name === "gateway" ? { ...outcome, ...deviation } : outcome;
    const outcomeOfCall = await callGarden(server.port, call);
    expect(outcomeOfCall).toMatchObject(want);
    // The handler does not set other fields.
    if (want.header !== undefined) expect(outcomeOfCall.header).toEqual(want.header);
    if (want.trailer !== undefined) expect(outcomeOfCall.trailer).toEqual(want.trailer);
  });

  test.each(["AddTrees", "ListTrees", "TradeTrees"] as const)(
    'emits "close" in %s after the response',
    async (method) => {
      const closed = Promise.withResolvers<void>();
      const addTrees = (call: Readable, callback: Callback): void => {
        call.on("close", closed.resolve);
        callback(null, {});
      };
      const listTrees = (call: Writable): void => void call.on("close", closed.resolve).end();
      const tradeTrees = (call: DuplexCall): void => void call.on("close", closed.resolve).end();
      await using server = await servers[name]({ addTrees, listTrees, tradeTrees });
      expect(await callGarden(server.port, { method })).toMatchObject({ code: status.OK });
      await closed.promise;
    },
  );

  test("getDeadline returns the client's deadline", async () => {
    await using server = await servers[name](unary((call, callback) => callback(null, say(call.getDeadline()))));
    const deadline = Date.now() + 60_000;
    const { messages } = await callGarden(server.port, { method: "GetTree", options: { deadline } });
    expect(Math.abs(Number(messages[0]?.["speciesName"]) - deadline)).toBeLessThan(30_000);
  });

  test.each(["GetTree", "AddTrees", "ListTrees", "TradeTrees"] as const)(
    'emits "cancelled" in %s when the client cancels the call',
    async (method) => {
      const { promise: seen, resolve } = Promise.withResolvers<unknown>();
      const { promise: started, resolve: start } = Promise.withResolvers<void>();
      const wait = (call: EventEmitter & Pick<Unary, "cancelled">): void => {
        call.on("cancelled", () => resolve(call.cancelled));
        start();
      };
      await using server = await servers[name]({ getTree: wait, addTrees: wait, listTrees: wait, tradeTrees: wait });
      const onStart = (cancel: () => void): void => void started.then(cancel);
      const outcome = await callGarden(server.port, { method, onStart, keepsOpen: true });
      expect(outcome).toMatchObject({ code: status.CANCELLED });
      expect(await seen).toBe(true);
    },
  );
});
