import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { watchIdle } from "../../../../../src/gateway/carriers/sockets/node/idle-watch.ts";
import { within } from "../../../../support/deadline.ts";

const nothing = (): number => 0;

test.each([{ idleTimeoutMs: 2 ** 34 }, { idleTimeoutMs: Number.POSITIVE_INFINITY }])(
  "a connection that may be idle for $idleTimeoutMs ms outlasts one that may not",
  async ({ idleTimeoutMs }) => {
    const connection = new EventEmitter();
    let isIdle = false;
    watchIdle(connection, nothing, idleTimeoutMs, () => {
      isIdle = true;
    });
    const other = Promise.withResolvers<void>();
    watchIdle(connection, nothing, 80, other.resolve);
    await within(other.promise, "the other connection to be idle");
    connection.emit("close");
    expect(isIdle).toBe(false);
  },
);

test("a connection that carries something all the time is never idle, and each time without anything counts", async () => {
  const connection = new EventEmitter();
  let carried = 0;
  const idle: string[] = [];
  watchIdle(
    connection,
    () => carried++,
    40,
    () => idle.push("busy"),
  );
  const twice = Promise.withResolvers<void>();
  watchIdle(connection, nothing, 40, () => {
    if (idle.push("quiet") === 2) twice.resolve();
  });
  await within(twice.promise, "the quiet connection to be idle for the second time");
  connection.emit("close");
  expect(idle).toEqual(["quiet", "quiet"]);
});
