import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { briefTransaction, readCommitted } from "../../../../src/stores/postgres/server/pinned-settings.ts";
import { readServerUrl } from "../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../src/stores/postgres/server/session.ts";
import { createCertificate, startOnLoopback } from "@protoport/testing/http";
import { closing, createTempFolder, freePort, type TempFolder, within } from "@protoport/testing/process";
// oxfmt-ignore
import { cancelWaitsForStandby, errorMessage, messageOf, type PostgresServer, runSql, startCuttingProxy, startPostgres,
  withoutStandby } from "../../../support/plants/index.ts";

const timeouts = { lockTimeoutMs: 123, statementTimeoutMs: 4_567, responseTimeoutMs: 60_000 };
const respondingWithin = (ms: number) => ({ lockTimeoutMs: 0, statementTimeoutMs: 0, responseTimeoutMs: ms });
const certificate = createCertificate("PostgreSQL");
const unresponsiveMessage = "the server does not respond";

/** Returns whether the response came too late for the expected error. */
const isLate = (result: unknown, should: { readonly message?: string }): boolean =>
  result instanceof Error && result.message !== should.message && result.message === unresponsiveMessage;

let port: number;
let server: PostgresServer;
let folder: TempFolder;
beforeAll(async () => {
  folder = createTempFolder();
  writeFileSync(folder.file("ca.pem"), certificate.cert);
  writeFileSync(folder.file("other.pem"), createCertificate("PostgreSQL").cert);
  port = await freePort();
  server = await startPostgres([], { tls: { certificate, port } });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

function portOf(listening: Server): number {
  const address = listening.address();
  if (address === null || typeof address === "string") throw new Error("not listening on a port");
  return address.port;
}

function sessionOf(url: string, ...limits: readonly (typeof timeouts)[]): Session & AsyncDisposable {
  const session = new Session(readServerUrl(url), ...limits);
  return Object.assign(session, { [Symbol.asyncDispose]: () => session.close() });
}

const urlOf = (way: { readonly port: number }, name = "a-test"): string =>
  `postgres://tester@127.0.0.1:${way.port}/postgres?sslmode=disable&application_name=${name}`;

async function isEncrypted(parameters: string, host = "localhost"): Promise<string | null | undefined> {
  const session = new Session(readServerUrl(`postgres://tester@${host}:${port}/postgres?${parameters}`), timeouts);
  try {
    const [row] = await session.query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
    return row?.[0];
  } finally {
    await session.close();
  }
}

// Certificates are for localhost and 127.0.0.1, for which 127.1 is another name.
describe("a session", () => {
  test.each([
    { verb: "does not use", mode: "disable" },
    { verb: "uses", mode: "prefer" },
    { verb: "uses", mode: "require" },
  ])("$verb TLS with sslmode=$mode on a server with TLS", async ({ verb, mode }) => {
    await expect(isEncrypted(`sslmode=${mode}`)).resolves.toBe(verb === "uses" ? "t" : "f");
  });

  test("on a server without TLS uses cleartext only with sslmode=prefer", async () => {
    await using plain = await startCleartextProxy();
    const connectTo = (mode: string): Promise<unknown> => {
      const url = `postgres://tester@127.0.0.1:${plain.port}/postgres?sslmode=${mode}`;
      const session = new Session(readServerUrl(url));
      return session.query("SELECT 1").finally(() => void session.close());
    };
    await expect(connectTo("prefer")).resolves.toEqual([["1"]]);
    await expect(connectTo("require")).rejects.toThrow("The server does not support SSL connections");
  });

  test.for([
    ["the TLS handshake fails", (client: Socket) => client.once("data", () => client.end("HTTP/1.1 400 Bad Request"))],
    ["the server refuses its users over TLS", refuseOverTls],
  ] as const)("falls back to cleartext with sslmode=prefer if %s", async ([, onTls]) => {
    await using proxy = await startTlsProxy(onTls);
    await using session = sessionOf(`postgres://tester@127.0.0.1:${proxy.port}/postgres`);
    await expect(session.query("SELECT 1")).resolves.toEqual([["1"]]);
  });

  test.each([
    ["sslmode=verify-full and the right authority", "sslmode=verify-full&sslrootcert=ca.pem", "127.0.0.1"],
    ["sslmode=verify-ca and another host name", "sslmode=verify-ca&sslrootcert=ca.pem", "127.1"],
  ])("with %s connects", async (_what, parameters, host) => {
    await expect(isEncrypted(parameters.replace("ca.pem", folder.file("ca.pem")), host)).resolves.toBe("t");
  });

  test.each([
    ["sslmode=verify-full and another host name", "sslmode=verify-full&sslrootcert=ca.pem", "127.1"],
    ["sslmode=verify-full and another authority", "sslmode=verify-full&sslrootcert=other.pem", "localhost"],
    ["sslmode=verify-ca and another authority", "sslmode=verify-ca&sslrootcert=other.pem", "localhost"],
    ["sslmode=verify-full and no authority", "sslmode=verify-full", "127.0.0.1"],
  ])("with %s fails to connect", async (_what, parameters, host) => {
    const withFiles = parameters.replace(/sslrootcert=(.*)/, (_, name) => `sslrootcert=${folder.file(String(name))}`);
    await expect(isEncrypted(withFiles, host)).rejects.toThrow(/certificate/i);
  });

  // Authentication messages (postgresql.org/docs/current/protocol-message-formats.html).
  test.for([
    ["requests the password", "R\0\0\0\x08\0\0\0\x03"],
    ["requests an MD5 hash of the password", "R\0\0\0\x0c\0\0\0\x05salt"],
    ["offers only SCRAM-SHA-256", "R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0"],
    ["does not authenticate the user", "R\0\0\0\x08\0\0\0\0"],
  ] as const)("with channel_binding=require sends no password to a server that %s", async ([reason, reply]) => {
    const received: string[] = [];
    await using plain = await forward((message) => {
      received.push(message.toString("latin1"));
      return { reply: Buffer.from(reply), isOver: false };
    });
    const parameters = "sslmode=disable&channel_binding=require";
    await using session = sessionOf(`postgres://ann:secret@127.0.0.1:${plain.port}/p?${parameters}`);
    await expect(session.connect()).rejects.toThrow(`channel_binding is require, but the server ${reason}`);
    expect([received.length, received.join().includes("secret")]).toEqual([1, false]);
  });

  test("sets the timeouts on the server", async () => {
    await using session = sessionOf(await server.createSchema(), timeouts);
    const rows = await session.query("SELECT current_setting('lock_timeout'), current_setting('statement_timeout')");
    expect(rows).toEqual([["123ms", "4567ms"]]);
  });

  const refusals = ["08P01", "0A000", "22023", "42501", "42704", "55P02"];
  test.each(refusals)("connects without timeouts if a pooler refuses them with %s", async (sqlState) => {
    await using pooler = await startPoolerLike(sqlState);
    await using session = sessionOf(urlOf(pooler), timeouts);
    await expect(session.query("SELECT current_setting('lock_timeout')")).resolves.toEqual([["0"]]);
  });

  test.each([
    ["closed", (session: Session) => session.connect().then(() => session.close())],
    ["discarded", (session: Session) => session.connect().then(() => session.discard())],
    ["closed while it connects", (session: Session) => Promise.allSettled([session.connect(), session.close()])],
    [
      "discarded while a statement runs",
      async (session: Session) => {
        await session.connect();
        const lost = expect(session.query("SELECT pg_sleep(60)")).rejects.toThrow();
        session.discard();
        await lost;
      },
    ],
  ])("that is %s leaves no connection open", async (name, release) => {
    const url = await server.createSchema();
    const application = name.replaceAll(" ", "-");
    await release(new Session(readServerUrl(`${url}&application_name=${application}`)));
    const remaining = `SELECT FROM pg_stat_activity WHERE application_name = '${application}'`;
    // A statement continues after its caller has stopped waiting.
    const running = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = '${application}'`;
    await expect.poll(() => runSql(url, running).then(() => runSql(url, remaining))).toEqual([]);
  });

  test("tries no further host after close()", async () => {
    const { promise: requested, resolve: onAsked } = Promise.withResolvers<Socket>();
    let times = 0;
    await using mute = await startOnLoopback(createServer((socket) => (times++, onAsked(socket))));
    const { port: mutePort } = mute.address;
    const session = new Session(readServerUrl(`postgres://tester@127.0.0.1:${mutePort}/plants?connect_timeout=60`));
    const connecting = expect(session.connect()).rejects.toThrow("the session is closed");
    const socket = await requested;
    await session.close();
    await connecting;
    await expect(session.connect()).rejects.toThrow("the session is closed");
    expect(times).toBe(1);
    socket.destroy();
  });

  test("does not retry with other TLS settings after a connection reset", async () => {
    let connections = 0;
    await using way = await listenOnPort(createServer((socket) => (connections++, socket.resetAndDestroy())));
    await expect(new Session(readServerUrl(urlOf(way))).connect()).rejects.toMatchObject({ code: "ECONNRESET" });
    expect(connections).toBe(1);
  });

  test("resolves close after its connection is closed", async () => {
    const reports: string[] = [];
    await using way = await proxyWith((client, upstream) => {
      upstream.pipe(client);
      client.on("data", (data: Buffer) => {
        // Terminate (postgresql.org/docs/current/protocol-message-formats.html).
        if (data.length === 5 && data.toString("latin1", 0, 1) === "X") reports.push("asked to end");
        upstream.write(data);
      });
    });
    const session = new Session(readServerUrl(urlOf(way)));
    await session.connect();
    await session.close().then(() => reports.push("closed"));
    expect(reports).toEqual(["asked to end", "closed"]);
  });

  test("runs no more statements in a transaction after its connection was lost", async () => {
    const url = await server.createSchema();
    await runSql(url, "CREATE TABLE t (x int)");
    const session = new Session(readServerUrl(url));
    await session.begin(readCommitted);
    const [row] = await session.query("SELECT pg_backend_pid()");
    await runSql(url, `SELECT pg_terminate_backend(${row?.[0]}, 10000)`);
    await expect(session.query("INSERT INTO t VALUES (1)")).rejects.toThrow(/connection|terminat/i);
    const refused = session.query("INSERT INTO t VALUES (2)");
    await expect(refused).rejects.toThrow("the connection was lost during a transaction");
    await expect(session.commit()).rejects.toThrow("the connection was lost during a transaction");
    await expect(session.rollBack()).rejects.toThrow("the connection was lost during a transaction");
    session.discard();
    await session.query("INSERT INTO t VALUES (3)");
    await session.close();
    expect(await runSql(url, "SELECT x FROM t")).toEqual([{ x: 3 }]);
  });

  test("reconnects after a committed transaction", async () => {
    const url = await server.createSchema();
    await using session = sessionOf(url);
    await session.begin(readCommitted);
    const [row] = await session.query("SELECT pg_backend_pid()");
    await session.commit();
    await runSql(url, `SELECT pg_terminate_backend(${row?.[0]}, 10000)`);
    await expect.poll(() => session.query("SELECT 1").catch(() => "lost")).toEqual([["1"]]);
  });

  test("does not retry with other TLS settings after a refused password", async () => {
    let requested = 0;
    await using refusing = await forward(() => {
      requested++;
      return { reply: errorMessage("SFATAL\0C28P01\0Mpassword authentication failed\0\0"), isOver: true };
    });
    const session = new Session(readServerUrl(`postgres://t@127.0.0.1:${refusing.port}/p?sslmode=disable`), timeouts);
    await expect(session.connect()).rejects.toMatchObject({ code: "28P01" });
    expect(requested).toBe(1);
  });

  test("cancels a statement that times out, and reconnects", async () => {
    const url = await server.createSchema();
    await using session = sessionOf(`${url}&application_name=silent`, respondingWithin(1_000));
    const [before] = await session.query("SELECT pg_backend_pid()");
    await expect(session.query("SELECT pg_sleep(60)")).rejects.toMatchObject({ code: "57014" });
    // A late cancel request cancels nothing else.
    await expect(session.query("SELECT pg_backend_pid()")).resolves.not.toEqual([before]);
    // The statement does not continue on the server, not even when connected over a Unix socket.
    const running = "SELECT FROM pg_stat_activity WHERE application_name = 'silent' AND query LIKE '%sleep%'";
    await expect.poll(() => runSql(url, running)).toEqual([]);
  });

  test("keeps locks for 5 seconds if its process is stopped in a transaction", async () => {
    await using session = sessionOf(await server.createSchema(), timeouts);
    const setting = "SELECT pg_catalog.current_setting('idle_in_transaction_session_timeout')";
    await expect(session.transact(briefTransaction, () => session.query(setting))).resolves.toEqual([["5s"]]);
  });

  test.each([
    { mode: "require", first: sslRequestCode },
    { mode: "disable", first: cancelCode },
  ])("with sslmode=$mode, cancels a statement over a connection like its own", async ({ mode, first }) => {
    const codes: number[] = [];
    await using proxy = await listenOnPort(
      createServer((client) => {
        const upstream = connect(port, "127.0.0.1");
        for (const socket of [client, upstream]) socket.on("error", () => undefined);
        client.once("data", (data: Buffer) => codes.push(data.readInt32BE(4))).on("close", () => upstream.destroy());
        // Nothing else would read the client's last bytes.
        upstream.on("close", () => client.destroySoon());
        client.pipe(upstream).pipe(client);
      }),
    );
    const url = `postgres://tester@127.0.0.1:${proxy.port}/postgres?sslmode=${mode}`;
    await using session = sessionOf(url, { ...timeouts, responseTimeoutMs: 500 });
    await expect(session.query("SELECT pg_sleep(60)")).rejects.toMatchObject({ code: "57014" });
    expect(codes.slice(1)).toEqual([first]);
  });

  // If the server responds to the statement, the response contains the outcome.
  test.each(
    // oxfmt-ignore
    [
      { name: "the server cancels the statement", sql: "SELECT pg_sleep(60)", expected: { code: "57014" } },
      { name: "the synchronous standby does not confirm the commit",
        sql: "SELECT pg_logical_emit_message(true, 'waits', '')",
        expected: { message: "committed, but not confirmed by its synchronous standbys" }, isAlone: true },
      {
        name: "the server does not cancel the statement",
        // PostgreSQL signals the process and its group, so one request may arrive as two.
        sql: `DO $$ DECLARE until timestamptz := clock_timestamp() + interval '3 seconds'; BEGIN
                WHILE clock_timestamp() < until LOOP
                  BEGIN PERFORM pg_sleep(3); EXCEPTION WHEN query_canceled THEN NULL; END;
                END LOOP; END $$`,
        expected: { message: unresponsiveMessage },
      },
      { name: "the network drops packets", sql: "SELECT pg_sleep(60)", expected: { message: unresponsiveMessage },
        dropsPackets: true },
    ],
  )("when $name, reports the statement's outcome by the deadline", async ({ sql, expected, isAlone, dropsPackets }) => {
    const url = await server.createSchema();
    await using proxy = await startCuttingProxy(server.socketFolder, port);
    await using session = sessionOf(url.replace(server.socketFolder, proxy.socketFolder), timeouts);
    const ask = async (): Promise<unknown> => {
      session.deadlineMs = Number.POSITIVE_INFINITY;
      await session.connect();
      using waits = vi.spyOn(globalThis, "setTimeout");
      session.deadlineMs = performance.now() + 1_000;
      const sent = session.query(sql).then(() => ({}));
      const outcome = sent.catch((fault: unknown) => fault);
      if (dropsPackets === true) proxy.freeze();
      const result = await outcome;
      // The timeouts for the statement and for its cancellation do not depend on how busy the machine is.
      const [forStatement = NaN, forEnd = NaN] = waits.mock.calls.map(([, ms]) => ms);
      expect(forStatement + forEnd).toBeLessThanOrEqual(1_000);
      return result;
    };
    const askUntilInTime = async (): Promise<void> => {
      let result = await ask();
      // On a busy machine, a server may take more than half a second to cancel a statement.
      for (let attempts = 1; attempts < 5 && isLate(result, expected); attempts++) result = await ask();
      expect(result).toMatchObject(expected);
    };
    await (isAlone === true ? withoutStandby(url, askUntilInTime) : askUntilInTime());
  });

  test("closes although the network drops packets", async () => {
    const url = await server.createSchema();
    await using proxy = await startCuttingProxy(server.socketFolder, port);
    const session = new Session(readServerUrl(url.replace(server.socketFolder, proxy.socketFolder)), timeouts);
    await session.connect();
    proxy.freeze();
    await within(session.close(), "the end of the connection");
  });

  test.each(["SELECT 1", "SELECT 1 / 0"])("stops the timer for %s when the response arrives", async (sql) => {
    const limitMs = 54_321;
    await using session = sessionOf(await server.createSchema(), { ...timeouts, responseTimeoutMs: limitMs });
    await session.connect();
    using started = vi.spyOn(globalThis, "setTimeout");
    using stopped = vi.spyOn(globalThis, "clearTimeout");
    await session.query(sql).catch(() => undefined);
    const timers = started.mock.results.filter((_, i) => started.mock.calls[i]?.[1] === limitMs);
    expect(timers).toHaveLength(1);
    expect(stopped.mock.calls.map(([timer]) => timer)).toContain(timers[0]?.value);
  });

  test.each([
    { what: "to its connection", expected: [] },
    // AuthenticationOk and ReadyForQuery.
    { what: "to its first query", expected: ["R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"] },
  ])("without a response $what fails at its deadline", async ({ expected }) => {
    const remaining = [...expected];
    await using mute = await forward(() => ({ reply: Buffer.from(remaining.shift() ?? ""), isOver: false }));
    const parameters = "connect_timeout=60&sslmode=disable&target_session_attrs=primary";
    const url = `postgres://tester@127.0.0.1:${mute.port}/plants?${parameters}`;
    await using session = sessionOf(url, timeouts);
    session.deadlineMs = performance.now() + 200;
    await expect(session.connect()).rejects.toThrow("127.0.0.1 did not respond in time");
  });

  test("sends no statement if too little time is left to cancel it", async () => {
    const url = await server.createPlants([1n]);
    const session = new Session(readServerUrl(url), timeouts);
    session.deadlineMs = performance.now() + 900;
    await expect(session.connect()).rejects.toThrow("connecting timed out");
    session.deadlineMs = 0;
    await expect(session.query("DELETE FROM plants")).rejects.toThrow("the deadline has passed");
    await session.close();
    expect(await runSql(url, "SELECT id FROM plants")).toEqual([{ id: "1" }]);
  });

  test("fails if no time remains after connecting", async () => {
    let session: Session | undefined;
    await using slow = await forward((first) => {
      if (session !== undefined) session.deadlineMs = 0;
      return first;
    });
    session = new Session(readServerUrl(urlOf(slow)), timeouts);
    await expect(session.connect()).rejects.toThrow("connecting timed out");
    await session.close();
  });

  test("sends no cancel request after the statement has finished", async () => {
    let connections = 0;
    await using way = await forward((first) => {
      connections++;
      return first;
    });
    const url = urlOf(way);
    const [used, unused] = [new Session(readServerUrl(url)), new Session(readServerUrl(url))];
    await expect(used.query("SELECT 1 / 0")).rejects.toMatchObject({ code: "22012" });
    await used.query("SELECT 1");
    await used.close();
    await unused.connect();
    await unused.close();
    expect(connections).toBe(2);
  });

  test("fails when the server neither responds nor accepts the cancel request", async () => {
    const way = await forward((first) => first);
    const session = new Session(readServerUrl(urlOf(way)), respondingWithin(200));
    await session.connect();
    // The proxy accepts no more connections, so the cancel request fails.
    const closed = way[Symbol.asyncDispose]();
    await expect(session.query("SELECT pg_sleep(60)")).rejects.toThrow("the server does not respond");
    session.discard();
    await closed;
  });

  test("fails if the server neither responds nor closes the cancel connection", async () => {
    const url = await server.createSchema();
    await using silent = await forward((first) =>
      first.readInt32BE(4) === cancelCode ? { reply: Buffer.alloc(0), isOver: false } : first,
    );
    const session = new Session(readServerUrl(urlOf(silent, "unheard")), respondingWithin(200));
    await expect(session.query("SELECT pg_sleep(60)")).rejects.toThrow("the server does not respond");
    session.discard();
    await runSql(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'unheard'");
  });

  test("sends a single cancel request when it is closed", async () => {
    const url = await server.createSchema();
    let requested = 0;
    await using silent = await forward((first) => {
      if (first.readInt32BE(4) !== cancelCode) return first;
      requested++;
      return { reply: Buffer.alloc(0), isOver: false };
    });
    const session = new Session(readServerUrl(urlOf(silent, "asked-once")));
    await session.connect();
    const lost = expect(session.query("SELECT pg_sleep(60)")).rejects.toThrow("Connection terminated");
    const running = "SELECT FROM pg_stat_activity WHERE application_name = 'asked-once' AND wait_event = 'PgSleep'";
    await expect.poll(() => runSql(url, running)).toHaveLength(1);
    await session.close();
    await lost;
    expect(requested).toBe(1);
    await runSql(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'asked-once'");
  });

  test("cancels a timed-out statement before closing its connection, as a pooler requires", async () => {
    const url = await server.createSchema();
    await using pooler = await startForgetfulPooler();
    await using session = sessionOf(urlOf(pooler, "given-up"), respondingWithin(1_000));
    await expect(session.query("SELECT pg_sleep(60)")).rejects.toMatchObject({ code: "57014" });
    session.discard();
    const running = "SELECT FROM pg_stat_activity WHERE application_name = 'given-up'";
    await expect.poll(() => runSql(url, running)).toEqual([]);
  });

  test("keeps a connection open until the server has accepted its cancel request", async () => {
    const ended: string[] = [];
    const requested = Promise.withResolvers<void>();
    await using way = await listenOnPort(
      createServer((client) => {
        const upstream = connect(socketOf(server.socketFolder));
        for (const socket of [client, upstream]) socket.on("error", () => undefined);
        client.once("data", (first: Buffer) => {
          if (first.readInt32BE(4) === cancelCode) {
            requested.resolve();
            const remove = (): void => void (ended.push("request"), client.end());
            // The cancel request's connection is closed some time after the response.
            return void setTimeout(remove, 50);
          }
          client.once("close", () => void (ended.push("connection"), upstream.destroy()));
          // The response comes despite the cancel request.
          upstream.on("data", (data: Buffer) => {
            void (data.includes("late") ? requested.promise : Promise.resolve()).then(() => client.write(data));
          });
          upstream.write(first);
          client.pipe(upstream);
        });
      }),
    );
    await using session = sessionOf(urlOf(way), respondingWithin(50));
    expect(await session.query("SELECT 'late'")).toEqual([["late"]]);
    await expect.poll(() => ended).toEqual(["request", "connection"]);
  });

  test("cancels the running statement before closing its connection, as a pooler requires", async () => {
    const url = await server.createSchema();
    await using pooler = await startForgetfulPooler();
    const session = new Session(readServerUrl(urlOf(pooler, "closed")));
    const running = "SELECT FROM pg_stat_activity WHERE application_name = 'closed'";
    const ended = expect(session.query("SELECT pg_sleep(60)")).rejects.toThrow();
    await expect.poll(() => runSql(url, `${running} AND wait_event = 'PgSleep'`)).toHaveLength(1);
    await session.close();
    await ended;
    await expect.poll(() => runSql(url, running)).toEqual([]);
  });

  // A notice's fields: its severity in any language, SQLSTATE, message, and the routine that sent it.
  const [worker, doubt] = ["DefaultCitusNoticeReceiver", "a worker sent a warning, possibly that"];
  const unconfirmed = "committed, but not confirmed by its synchronous standbys";
  const committer = "FinishRemoteTransactionCommit";
  test.each<[verb: string, name: string, notice: readonly string[], expected?: string]>([
    ["rejects", "a cancelled wait's warning", ["WARNUNG", "01000", "m", "SyncRepWaitForLSN"], unconfirmed],
    ["rejects", "a worker's warning", ["WARNUNG", "01000", "m", worker], doubt],
    ["rejects", "a worker's SQLSTATE 57P01", ["DEBUG", "57P01", "m", worker], doubt],
    ["rejects", "an unconfirmed worker's warning", ["WARNUNG", "01000", "m", committer], "a worker did not confirm"],
    ["resolves", "a worker's debug message", ["DEBUG", "00000", "m", worker]],
    ["resolves", "a collation warning", ["WARNUNG", "01000", "ALTER DATABASE p REFRESH COLLATION VERSION", worker]],
    ["resolves", "a trigger's warning", ["WARNUNG", "01000", "m", "exec_stmt_raise"]],
    ["resolves", "a trigger's SQLSTATE 57P01", ["WARNUNG", "57P01", "m", "exec_stmt_raise"]],
  ])("%s a statement after %s in a notice", async (_verb, _name, [severity, sqlState, message, routine], expected) => {
    const fields = `S${severity}\0VWARNING\0C${sqlState}\0M${message}\0R${routine}\0\0`;
    await using warning = await startWarningProxy(messageOf("N", fields));
    const through = readServerUrl(urlOf(warning));
    const session = new Session(through);
    const running = session.query("SELECT 1").finally(() => void session.close());
    if (expected === undefined) await expect(running).resolves.toEqual([["1"]]);
    else await expect(running).rejects.toThrow(expected);
  });

  test.each<{ name: string; commit: (session: Session) => Promise<unknown> }>([
    { name: "script", commit: (session) => session.run("BEGIN; CREATE TABLE t (x int); COMMIT") },
    {
      name: "transaction",
      commit: async (session) => {
        await session.begin("ISOLATION LEVEL READ COMMITTED; CREATE TABLE t (x int)");
        await session.commit();
      },
    },
  ])("reports a $name as committed only after its standbys have it", async ({ commit }) => {
    const url = await server.createSchema();
    await using session = sessionOf(`${url}&application_name=alone`, timeouts);
    await withoutStandby(url, async () => {
      await expect.poll(() => session.query("SHOW synchronous_standby_names")).toEqual([["nobody"]]);
      const refused = commit(session);
      const rejection = expect(refused).rejects.toThrow("committed, but not confirmed by its synchronous standbys");
      await Promise.all([rejection, expect.poll(() => cancelWaitsForStandby(url)).not.toEqual([])]);
    });
    // The failed commit does not affect the next statement.
    await expect(session.query("SELECT 1")).resolves.toEqual([["1"]]);
  });
});

/**
 * Starts a proxy that, like PgBouncer, forwards a cancel request only for a connection that is still open. The proxy
 * delays the request, so that a client that does not wait has already closed the connection.
 */
async function startForgetfulPooler(): Promise<Forwarding> {
  const open = new Set<Socket>();
  const pooler = createServer((client) => {
    const upstream = connect(socketOf(server.socketFolder));
    for (const socket of [client, upstream]) socket.on("error", () => undefined);
    const cancel = async (request: Buffer): Promise<void> => {
      for (let turns = 0; turns < 50 && open.size > 0; turns++) await nextTurn();
      if (open.size > 0) upstream.write(request);
      client.destroy();
    };
    client.once("data", (first: Buffer) => {
      if (first.readInt32BE(4) === cancelCode) return void cancel(first);
      open.add(client);
      // A connection that is closed with unread bytes has no end of file.
      client.once("close", () => {
        open.delete(client);
        upstream.destroy();
      });
      upstream.write(first);
      client.pipe(upstream).pipe(client);
    });
  });
  return await listenOnPort(pooler);
}

const startWarningProxy = (notice: Buffer): Promise<Forwarding> =>
  proxyWith((client, upstream) => {
    client.on("data", (data: Buffer) => {
      if (data.includes("SELECT")) client.write(notice);
      upstream.write(data);
    });
    upstream.pipe(client);
  });

/** Starts a proxy whose clients get a connection to the server's Unix socket, which closes after the client's. */
function proxyWith(onClient: (client: Socket, upstream: Socket) => void): Promise<Forwarding> {
  return listenOnPort(
    createServer((client) => {
      const upstream = connect(socketOf(server.socketFolder));
      for (const socket of [client, upstream]) socket.on("error", () => undefined);
      client.once("close", () => upstream.destroy());
      onClient(client, upstream);
    }),
  );
}

async function listenOnPort(proxy: Server): Promise<Forwarding> {
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return {
    port: portOf(proxy),
    [Symbol.asyncDispose]: async () => {
      proxy.close();
      await once(proxy, "close");
    },
  };
}

// CancelRequest (postgresql.org/docs/current/protocol-message-formats.html).
const cancelCode = 80_877_102;
const sslRequestCode = 80_877_103;

/** A proxy without TLS, which replies N to an SSLRequest. */
function startCleartextProxy(): Promise<Forwarding> {
  return forward((first) => (first.equals(sslRequest) ? { reply: Buffer.from("N"), isOver: false } : first));
}

/** A proxy that replies S to an SSLRequest, and passes the connection to `onTls`. */
function startTlsProxy(onTls: (client: Socket) => unknown): Promise<Forwarding> {
  return forward((first, client) => {
    if (!first.equals(sslRequest)) return first;
    client.write("S");
    return void onTls(client);
  });
}

// The error for a user without an entry for TLS in pg_hba.conf.
function refuseOverTls(client: Socket): void {
  const refusal = errorMessage("SFATAL\0VFATAL\0C28000\0Mno pg_hba.conf entry\0\0");
  const encrypted = new TLSSocket(client, { isServer: true, ...certificate });
  encrypted.once("data", () => encrypted.end(refusal));
}

// SSLRequest (postgresql.org/docs/current/protocol-message-formats.html).
const sslRequest = Buffer.from("0000000804d2162f", "hex");

/** A proxy that refuses start-up parameters like PgBouncer. */
function startPoolerLike(sqlState: string): Promise<Forwarding> {
  const reply = errorMessage(`SFATAL\0VFATAL\0C${sqlState}\0Munsupported startup parameter: statement_timeout\0\0`);
  return forward((first) => (first.includes("_timeout") ? { reply, isOver: true } : first));
}

function socketOf(socketFolder: string): string {
  return join(socketFolder, `.s.PGSQL.${port}`);
}

interface Forwarding extends AsyncDisposable {
  readonly port: number;
}

/**
 * Forwards connections to the server's Unix socket, unless `judge` replies to the first message.
 *
 * @param judge - returns the reply, or the message to forward instead of the first one, or handles the client itself
 */
async function forward(
  judge: (first: Buffer, client: Socket) => Buffer | { readonly reply: Buffer; readonly isOver: boolean } | undefined,
): Promise<Forwarding> {
  const proxy = createServer((client) => {
    client.on("error", () => undefined);
    const onFirst = (first: Buffer): void => {
      const judged = judge(first, client);
      if (judged === undefined) return;
      if (!Buffer.isBuffer(judged)) {
        if (judged.isOver) return void client.end(judged.reply);
        client.write(judged.reply);
        return void client.once("data", onFirst);
      }
      const upstream = connect(socketOf(server.socketFolder));
      upstream.on("error", () => client.destroy());
      upstream.write(judged);
      client.pipe(upstream).pipe(client);
    };
    client.once("data", onFirst);
  });
  return await listenOnPort(proxy);
}

test.each([
  { target: "any", expected: "reader_any" },
  { target: "read-write", expected: "Error: the server is read-only" },
  { target: "primary", expected: "reader_primary" },
])("target_session_attrs=$target decides whether a read-only server is used", async ({ target, expected }) => {
  const url = await server.createSchema();
  const role = `reader_${target.replace("-", "_")}`;
  await runSql(url, `CREATE ROLE ${role} LOGIN SUPERUSER; ALTER ROLE ${role} SET default_transaction_read_only = on`);
  const as = url.replace("user=tester", `user=${role}`);
  const session = new Session(readServerUrl(`${as}&target_session_attrs=${target}`));
  expect(await session.query("SELECT current_user").then(String, String)).toBe(expected);
  await session.close();
  await expect.poll(() => runSql(url, `SELECT FROM pg_stat_activity WHERE usename = '${role}'`)).toEqual([]);
});

test("a session reads the URL again for each connection", async () => {
  const url = await server.createSchema();
  await runSql(url, "CREATE ROLE rotated LOGIN SUPERUSER");
  let current = url;
  await using session = closing(new Session(readServerUrl(url, () => current)));
  await expect(session.query("SELECT current_user")).resolves.toEqual([["tester"]]);
  current = url.replace("user=tester", "user=rotated");
  session.discard();
  await expect(session.query("SELECT current_user")).resolves.toEqual([["rotated"]]);
});
