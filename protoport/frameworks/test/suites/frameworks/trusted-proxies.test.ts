import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import type { MountOptions } from "../../../src/mount.ts";
import { expressConnectMiddleware } from "../../../src/express.ts";
import { fastifyConnectPlugin } from "../../../src/fastify.ts";
import { folders, greenhouse, requireFrom } from "./frameworks.ts";
import { listen as listenNest, nestVersions } from "./nest-application.ts";

// The peer that `admit` gets if the framework trusts proxies.

type Options = Pick<MountOptions<object>, "admit" | "clientAddress" | "trustedProxies">;
type Start = (trusted: readonly string[] | false, options: Options) => Promise<string>;
const handlers = greenhouse({ getReading: () => ({}) });

const frameworks: readonly (readonly [string, Start])[] = [
  ...(["oldest", "newest"] as const).flatMap((version): (readonly [string, Start])[] => [
    [
      `the ${version} Express`,
      async (trusted, options) => {
        const app: RequestListener & { set(name: string, value: unknown): void; use(each: unknown): void } =
          requireFrom(folders[version])("express")();
        app.set("trust proxy", trusted);
        app.use(expressConnectMiddleware({ ...handlers, ...options }));
        const server = createServer(app).listen(0, "127.0.0.1");
        await once(server, "listening");
        onTestFinished(() => void server.close());
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server on a port has this address.
        return `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
      },
    ],
    [
      `the ${version} Fastify`,
      async (trusted, options) => {
        const app = requireFrom(folders[version])("fastify").fastify({ trustProxy: trusted });
        onTestFinished(() => app.close());
        app.register(fastifyConnectPlugin, { ...handlers, ...options });
        return await app.listen({ port: 0, host: "127.0.0.1" });
      },
    ],
  ]),
  ...nestVersions.map(([name, version]): readonly [string, Start] => [
    `Nest, ${name}`,
    async (trusted, options) => {
      const app = await version.create(options, undefined, [], { trustProxy: trusted });
      if (version.platform === "Express") Reflect.get(app, "set").call(app, "trust proxy", trusted);
      return await listenNest(app);
    },
  ]),
];

// oxfmt-ignore
const cases: readonly {
  readonly name: string;
  readonly trusted: readonly string[] | false;
  readonly options?: Options;
  readonly header: Readonly<Record<string, string>>;
  readonly want: string;
}[] = [
  { name: "no proxy", trusted: false, header: { "x-forwarded-for": "203.0.113.9" }, want: "127.0.0.1" },
  { name: "one proxy", trusted: ["127.0.0.1"], header: { "x-forwarded-for": "203.0.113.9" }, want: "203.0.113.9" },
  { name: "two proxies", trusted: ["127.0.0.1", "10.0.0.0/8"],
    header: { "x-forwarded-for": "192.0.2.1, 203.0.113.9, 10.1.2.3" }, want: "203.0.113.9" },
  { name: "a proxy with an IPv6 client", trusted: ["127.0.0.1"], header: { "x-forwarded-for": "2001:DB8:0::7" },
    want: "2001:db8::7" },
  { name: "a proxy with an IPv4 client in IPv6", trusted: ["127.0.0.1"],
    header: { "x-forwarded-for": "::ffff:203.0.113.9" }, want: "203.0.113.9" },
  { name: "another proxy", trusted: ["10.0.0.1"], header: { "x-forwarded-for": "203.0.113.9" }, want: "127.0.0.1" },
  { name: "one proxy, and trustedProxies names another field", trusted: ["127.0.0.1"],
    options: { trustedProxies: { addresses: ["127.0.0.1"], fields: "forwarded" } },
    header: { "x-forwarded-for": "203.0.113.9", forwarded: "for=192.0.2.1" }, want: "192.0.2.1" },
  { name: "one proxy, and trustedProxies names another proxy", trusted: ["127.0.0.1"],
    options: { trustedProxies: { addresses: ["10.0.0.1"] } }, header: { "x-forwarded-for": "203.0.113.9" },
    want: "127.0.0.1" },
];

describe.each(frameworks)("with %s", (_name, start) => {
  test.each(cases)("behind $name, admit gets $want as the peer", async ({ trusted, options, header, want }) => {
    const seen: string[] = [];
    const url = await start(trusted, { admit: ({ peer }) => void seen.push(peer.address), ...options });
    const other = { "x-forwarded-for": "198.51.100.1", forwarded: "for=198.51.100.1" };
    for (const each of [header, other]) {
      const response = await fetch(`${url}/sensors/palm/reading`, { headers: { connection: "close", ...each } });
      expect(response.status).toBe(200);
      await response.text();
    }
    const isTrusted = want !== "127.0.0.1";
    expect(seen).toEqual([want, isTrusted ? "198.51.100.1" : "127.0.0.1"]);
  });
});
