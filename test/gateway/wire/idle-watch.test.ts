import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { watchIdle } from "../../../src/gateway/wire/idle-watch.ts";
import { within } from "../../support/deadline.ts";

const quietSocket = { bytesRead: 0, bytesWritten: 0 };

test.each([{ idleTimeoutMs: 2 ** 34 }, { idleTimeoutMs: Number.POSITIVE_INFINITY }])(
  "a connection that may be idle for $idleTimeoutMs ms outlasts one that may not",
  async ({ idleTimeoutMs }) => {
    const connection = new EventEmitter();
    let isIdle = false;
    watchIdle(connection, quietSocket, idleTimeoutMs, () => {
      isIdle = true;
    });
    const other = Promise.withResolvers<void>();
    watchIdle(connection, quietSocket, 80, other.resolve);
    await within(other.promise, "the other connection to be idle");
    connection.emit("close");
    expect(isIdle).toBe(false);
  },
);
