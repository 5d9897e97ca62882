import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { readServerUrl } from "../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../src/stores/postgres/server/session.ts";
import { createCertificate } from "@protoport/testing/http";
import { closing, createTempFolder } from "@protoport/testing/process";

// SSLRequest (postgresql.org/docs/current/protocol-message-formats.html).
const sslRequest = Buffer.from("0000000804d2162f", "hex");

/** A server without TLS. The server replies N to an SSLRequest, and closes the connection after any other message. */
interface PlainServer extends AsyncDisposable {
  readonly port: number;
  /** The messages in cleartext. */
  readonly received: readonly Buffer[];
}

async function startPlainServer(): Promise<PlainServer> {
  const received: Buffer[] = [];
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (data) => {
      const bytes = Buffer.from(data);
      if (bytes.equals(sslRequest)) return void socket.write("N");
      received.push(bytes);
      socket.destroy();
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("not listening on a port");
  const close = async (): Promise<void> => void (await once(server.close(), "close"));
  return { port: address.port, received, [Symbol.asyncDispose]: close };
}

async function connectWith(port: number, parameters: string): Promise<void> {
  const url = `postgres://tester:secret@127.0.0.1:${port}/plants?${parameters}`;
  await using session = closing(new Session(readServerUrl(url)));
  await session.connect();
}

// oxfmt-ignore
test.each([
  ...["require", "REQUIRE", "Verify-Full", "", "allow", "verify-ca", "verify-full", "no-verify", "%72equire",
    "require%20"].map((mode) => `sslmode=${mode}`),
  ...["true", "1", "yes", "on", "TRUE", "require", "verify-full", ""].map((value) => `ssl=${value}`),
  "SSL=true", "SSLMODE=require", "sslMode=require", "ssl_mode=require", "ssl-mode=require", "ssl", "sslmode",
  "sslmode=require&sslmode=disable", "sslmode=disable&sslmode=require", "ssl=true&sslmode=disable",
  "sslmode=disable&ssl=true", "ssl=false&sslmode=require", "ssl=0&sslmode=require", "requiressl=1", "requiressl=true",
  "tls=true", "tls=1", "usessl=true", "encrypt=true", "gssencmode=require", "amp;sslmode=require",
  "x=1&amp;sslmode=require", ";sslmode=require", "%20sslmode=require", "&sslmode=require", "sslmode%3Drequire",
  "%73slmode=require", "sslmode=require;x=1", "sslmode[]=require", "?sslmode=require", "sslmode=require,disable",
  "\tsslmode=require", "sslmode=\trequire",
  ...["require", "prefer", "allow", "verify-ca"].map((mode) => `uselibpqcompat=true&sslmode=${mode}`),
  "sslnegotiation=direct", "sslnegotiation=direct&sslmode=disable", "sslnegotiation=DIRECT", "sslrootcert=system",
  "sslrootcert=ca.pem", "sslrootcert=/none", "sslcert=/none&sslmode=disable", "#sslmode=require",
  "a=b#?sslmode=require", "sslmode=require#",
])("a session with %s in the URL sends no cleartext to a server without TLS", async (parameters) => {
  using folder = createTempFolder();
  writeFileSync(folder.file("ca.pem"), createCertificate("PostgreSQL").cert);
  await using plain = await startPlainServer();
  const connecting = connectWith(plain.port, parameters.replace("ca.pem", folder.file("ca.pem")));
  await expect(connecting).rejects.toThrow(/^The server does not support SSL|the database URL/);
  expect(plain.received).toEqual([]);
});

const withoutTls = ["", "sslmode=prefer", "sslmode=disable"];
test.each(withoutTls)('with "%s" in the URL, a session falls back to cleartext', async (parameters) => {
  await using plain = await startPlainServer();
  await expect(connectWith(plain.port, parameters)).rejects.toThrow();
  expect(plain.received.length).toBeGreaterThan(0);
});
