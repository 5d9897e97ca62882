import type { Socket } from "node:net";
import type { Dice } from "../dice.ts";
import { type PostgresProxy, startPostgresProxy } from "./postgres-proxy.ts";

/** A proxy in front of a PostgreSQL server that lacks and refuses what distributed engines do. */
export interface DistributedProxy extends PostgresProxy {
  /** How many statements were refused, by SQLSTATE. */
  readonly refused: ReadonlyMap<string, number>;
  /** One statement in so many fails at random; none at 0, as at first. */
  failOneIn: number;
}

// What CockroachDB or YugabyteDB lack, at least in some of their releases, by the documentation of their makers.
const lacking = /\bTEMP(?:ORARY)?\b|\bON COMMIT DROP\b|pg_(?:try_)?advisory_|\bLOCK TABLE\b|\bLISTEN\b/i;

// Of the protocol of PostgreSQL ("Message Formats"): the type of a message, and its length, which counts itself.
const headerBytes = 5;

/** Where the outcome of a statement is lost: the server runs it, or not, and the answer is the same. */
interface Loss {
  readonly isRun: boolean;
}

/**
 * Starts a proxy to the server whose socket is in `serverFolder`.
 *
 * A statement is refused by spoiling its first letter, or that of its name, so that the state of the transaction is the one of a real error,
 * whose SQLSTATE is then replaced: 0A000 for what these engines lack; 40001 at random; and 40003 at random where a
 * transaction ends, of which every other one was committed.
 */
export async function startDistributedProxy(serverFolder: string, dice: Pick<Dice, "roll">): Promise<DistributedProxy> {
  const refused = new Map<string, number>();
  const state = { failOneIn: 0 };
  const count = (sqlState: string): string => {
    refused.set(sqlState, (refused.get(sqlState) ?? 0) + 1);
    return sqlState;
  };

  /** Decides on a statement, and returns the SQLSTATE to refuse it with, or how its outcome is lost. */
  const decide = (sql: string, isInTransaction: boolean): string | Loss | undefined => {
    if (lacking.test(sql)) return count("0A000");
    if (state.failOneIn === 0 || dice.roll(state.failOneIn) > 0) return undefined;
    const endsTransaction = sql.startsWith("COMMIT") || (!isInTransaction && !sql.startsWith("BEGIN"));
    if (!endsTransaction || dice.roll(2) === 0) return count("40001");
    count("40003");
    return { isRun: dice.roll(2) === 0 };
  };

  const proxy = await startPostgresProxy(serverFolder, (client, server) => {
    let isStarted = false;
    let isInTransaction = false;
    let sqlState: string | undefined;
    let isLost = false;
    const texts = new Map<string, string>();
    onMessages(
      client,
      () => isStarted,
      (message) => {
        isStarted = true;
        const type = String.fromCharCode(message[0] ?? 0);
        if (type === "P") {
          const name = textAt(message, headerBytes);
          texts.set(name, textAt(message, headerBytes + name.length + 1));
        }
        const at = statementAt(type, message);
        if (at > 0) {
          const written = textAt(message, at);
          const sql = (texts.get(written) ?? written).trim();
          const decision = decide(sql, isInTransaction);
          isLost = typeof decision === "object" && decision.isRun;
          sqlState = typeof decision === "object" ? "40003" : decision;
          if (sqlState !== undefined && !isLost) message[at] = "!".charCodeAt(0);
        }
        server.write(message);
      },
    );
    onMessages(
      server,
      () => true,
      (message) => {
        const type = String.fromCharCode(message[0] ?? 0);
        if (type === "Z") isInTransaction = message[headerBytes] !== "I".charCodeAt(0);
        if (isLost) {
          if (type !== "Z") return;
          isLost = false;
          client.write(errorMessage("40003"));
        } else if (type === "E" && sqlState !== undefined) {
          client.write(errorMessage(sqlState));
          sqlState = undefined;
          return;
        }
        client.write(message);
      },
    );
  });

  return Object.assign(state, { ...proxy, refused });
}

/** Returns where a message has the text of the statement that it runs, or its name; -1 if it runs none. */
function statementAt(type: string, message: Buffer): number {
  if (type === "Q") return headerBytes;
  const second = message.indexOf(0, headerBytes) + 1;
  // What is parsed under a name is run by the message after it, and what is not by this one.
  if (type === "P") return second === headerBytes + 1 ? second : -1;
  return type === "B" && message[second] !== 0 ? second : -1;
}

function textAt(message: Buffer, at: number): string {
  return message.toString("utf8", at, message.indexOf(0, at));
}

/** Calls back with each whole message. The first one of a client has no type. */
function onMessages(socket: Socket, hasType: () => boolean, onMessage: (message: Buffer) => void): void {
  let rest = Buffer.alloc(0);
  socket.on("data", (data: Buffer) => {
    rest = Buffer.concat([rest, data]);
    for (;;) {
      const typeBytes = hasType() ? 1 : 0;
      if (rest.length < typeBytes + 4) return;
      const end = typeBytes + rest.readInt32BE(typeBytes);
      if (rest.length < end) return;
      onMessage(rest.subarray(0, end));
      rest = rest.subarray(end);
    }
  });
}

function errorMessage(sqlState: string): Buffer {
  const fields = `SERROR\0VERROR\0C${sqlState}\0Minjected\0\0`;
  const message = Buffer.alloc(headerBytes + fields.length);
  message.write("E");
  message.writeInt32BE(4 + fields.length, 1);
  message.write(fields, headerBytes, "latin1");
  return message;
}
