import { hash } from "node:crypto";
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { connect } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { createCertificate, listenOnLoopback } from "@protoport/testing/http";
// oxfmt-ignore
import { createSigningKey, createTempFolder, type IdentityProvider, startIdentityProvider, testAudience
} from "@protoport/testing/process";
import { deletePlant, type Environment } from "../server/effects/comparison.ts";
import { type ConfiguredServer, startConfigured } from "../../../support/server/start-configured.ts";

// Replaces each watched file as Kubernetes replaces a secret, by a link to another folder. Then it changes the file in
// the new folder, which must be applied, and the one in the old folder, which must not.

/** A watched file, or several that belong together. */
interface Watched {
  /** The files' contents by name. They are the contents at the start, after each change, and in the old folder. */
  readonly contents: readonly Readonly<Record<string, string>>[];
  readonly environment: (folder: string) => Environment;
  /** Returns the index of the contents in use. */
  readonly inUse: (server: ConfiguredServer) => Promise<number>;
  readonly close?: () => void;
}

const four = [0, 1, 2, 3];
let plant = 1;

/** Returns the index of the token with which a plant can be deleted. */
async function findAccepted({ baseUrl }: ConfiguredServer, tokens: readonly string[]): Promise<number> {
  for (const [at, token] of tokens.entries()) {
    const headers = { connection: "close", authorization: `Bearer ${token}` };
    const response = await fetch(`${baseUrl}/plants/${plant}`, { method: "DELETE", headers });
    await response.body?.cancel();
    if (response.status !== 204) continue;
    plant++;
    return at;
  }
  return -1;
}

function tokenFile(): Watched {
  const tokens = four.map((at) => `token-${at}-of-the-watched-file`);
  return {
    contents: tokens.map((token) => ({ tokens: `sha256:${hash("sha256", token)} shop - -\n` })),
    environment: (folder) => ({ PLANTSTORE_TOKEN_HASHES_FILE: join(folder, "tokens") }),
    inUse: (server) => findAccepted(server, tokens),
  };
}

async function keysFile(provider: IdentityProvider): Promise<Watched> {
  const keys = await Promise.all(four.map((at) => createSigningKey("ES256", `key-${at}`)));
  const tokens = await Promise.all(keys.map((key) => provider.sign({}, {}, key)));
  return {
    contents: keys.map(({ jwk }) => ({ keys: JSON.stringify({ keys: [jwk] }) })),
    environment: (folder) => ({
      PLANTSTORE_JWT_ISSUERS: provider.issuer,
      PLANTSTORE_JWT_AUDIENCES: testAudience,
      PLANTSTORE_JWT_KEYS_FILE: join(folder, "keys"),
    }),
    inUse: (server) => findAccepted(server, tokens),
  };
}

const certificateFiles = (): Watched => ({
  contents: four.map((at) => {
    const { cert, key } = createCertificate(`server-${at}`);
    return { "cert.pem": cert, "key.pem": key };
  }),
  environment: (folder) => ({ TLS_CERT_FILE: join(folder, "cert.pem"), TLS_KEY_FILE: join(folder, "key.pem") }),
  inUse: async ({ port }) => {
    const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const { subject } = socket.getPeerCertificate();
    socket.destroy();
    return four.findIndex((at) => subject.CN === `server-${at}`);
  },
});

function clientSecret(provider: IdentityProvider): Watched {
  const secrets = four.map((at) => `s3cret-${at}-of-the-client`);
  let authorization: string | undefined;
  provider.respond = (request, response) => {
    ({ authorization } = request.headers);
    response.end(JSON.stringify({ active: true, sub: "ada", aud: "plantstore" }));
  };
  let call = 0;
  return {
    contents: secrets.map((secret) => ({ secret })),
    environment: (folder) => ({
      PLANTSTORE_INTROSPECTION_URL: `${provider.issuer}/introspect`,
      PLANTSTORE_INTROSPECTION_CLIENT_ID: "plantstore",
      PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: join(folder, "secret"),
    }),
    inUse: async (server) => {
      // Outcomes are cached by token.
      await deletePlant(server, `opaque-${call++}`);
      const sent = Buffer.from(authorization?.replace("Basic ", "") ?? "", "base64").toString();
      return secrets.findIndex((secret) => sent.includes(secret));
    },
  };
}

/** Only the user and the URL's password may change. */
async function databaseUrl(): Promise<Watched> {
  let startup = "";
  // Reads a connection's user, and closes it.
  const database = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (data) => {
      startup = String(data);
      socket.destroy();
    });
  });
  const port = Number(new URL(await listenOnLoopback(database)).port);
  const users = four.map((at) => `user_${at}`);
  return {
    contents: users.map((user) => ({ url: `postgres://${user}:secret@127.0.0.1:${port}/plants?sslmode=disable` })),
    environment: (folder) => ({ DATABASE_URL: undefined, DATABASE_URL_FILE: join(folder, "url") }),
    inUse: () => Promise.resolve(users.findIndex((user) => startup.includes(user))),
    close: () => void database.close(),
  };
}

function write(folder: string, files: Readonly<Record<string, string>> = {}): void {
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
}

test.each<{ name: string; watch: (provider: IdentityProvider) => Watched | Promise<Watched> }>([
  { name: "token hashes file", watch: tokenFile },
  { name: "keys file", watch: keysFile },
  { name: "certificate", watch: certificateFiles },
  { name: "client secret", watch: clientSecret },
  { name: "database URL file", watch: databaseUrl },
])("a $name is read only from its symbolic link's new target", { timeout: 60_000 }, async ({ watch }) => {
  using provider = await startIdentityProvider(await createSigningKey("ES256", "of-the-provider"));
  const { contents, environment, inUse, close } = await watch(provider);
  onTestFinished(close ?? (() => undefined));
  using folder = createTempFolder();
  const [old, next, link] = [folder.file("old"), folder.file("next"), folder.file("data")];
  mkdirSync(old);
  mkdirSync(next);
  write(old, contents[0]);
  write(next, contents[1]);
  symlinkSync(old, link);
  await using server = await startConfigured({ ...environment(link) });
  await expect.poll(() => inUse(server)).toBe(0);
  symlinkSync(next, folder.file("data.new"));
  renameSync(folder.file("data.new"), link);
  await expect.poll(() => inUse(server)).toBe(1);
  write(old, contents[3]);
  write(next, contents[2]);
  await expect.poll(() => inUse(server)).toBe(2);
  await server.reload();
  expect(await inUse(server)).toBe(2);
});
