import { once } from "node:events";
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { createByteReader, createTempFolder, createTestGateway, exchange, type Field, openLogLines, openSocket,
  overHttp1, startNode, type TempFolder, wires } from "@protoport/testing";
import { openMemoryStore } from "../../src/stores/index.ts";
import { expectedResponse, actualResponse } from "../contract/expected-response.ts";
import { deletePlantRequest } from "../support/plants/delete-plant.ts";
import { authorized, startPlantServer } from "../support/server/plant-server.ts";

/** Leaves a stale socket in a folder, as a killed process does, and returns its path. */
async function createStaleSocket(folder: TempFolder): Promise<string> {
  const path = folder.file("s");
  const program = `require("node:net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, "SIGKILL"))`;
  await using dead = startNode(["-e", program], folder.path);
  await dead.end();
  return path;
}

test.each(wires)("a Unix socket serves deletions over $name like a port", async ({ format, httpVersion }) => {
  using folder = createTempFolder();
  await using server = await startPlantServer({ path: folder.file("s"), store: openMemoryStore(new Set([7n])) });
  const request = deletePlantRequest(format, 7n, [authorized]);
  const response = await exchange(server.address, httpVersion, request);
  expect(actualResponse(format, response)).toStrictEqual(expectedResponse(format, { code: "ok" }));
});

describe("the peer of a request on a Unix socket", () => {
  const forwarded: Field = ["x-forwarded-for", "203.0.113.7"];

  test.each([
    ['is "unix:" if the proxy is not trusted', ["127.0.0.1"], [forwarded], "unix:"],
    ["is the client that a trusted proxy forwards", ["unix:"], [forwarded], "203.0.113.7"],
    ['is "unix:" without forwarded fields', ["unix:"], [], "unix:"],
  ])("%s", async (_name, trusted, header, want) => {
    using folder = createTempFolder();
    const { log, lines } = openLogLines("info");
    await using server = await startPlantServer({ path: folder.file("s"), log, trustedProxies: trusted });
    await exchange(server.address, "1.1", { httpMethod: "GET", path: "/livez", header });
    await expect.poll(() => lines().find(({ msg }) => msg === "call")).toMatchObject({ peer: want });
  });

  test.each([
    ["is the client in a PROXY header", "PROXY TCP4 203.0.113.7 192.0.2.9 47 443\r\n", "203.0.113.7"],
    ['is "unix:" after a PROXY header without an address', "PROXY UNKNOWN\r\n", "unix:"],
  ])("%s", async (_name, line, want) => {
    using folder = createTempFolder();
    const { log, lines } = openLogLines("info");
    const trustedProxies = ["unix:"];
    await using server = await startPlantServer({ path: folder.file("s"), log, trustedProxies, proxyProtocol: "on" });
    const socket = openSocket(server.address);
    socket.write(line);
    using connection = overHttp1(socket, createByteReader(socket), "localhost");
    connection.request({ httpMethod: "GET", path: "/livez", header: [] });
    await connection.readResponse();
    await expect.poll(() => lines().find(({ msg }) => msg === "call")).toMatchObject({ peer: want });
  });
});

describe("the file of a Unix socket", () => {
  test("has mode 660 by default, and is removed by close", async () => {
    using folder = createTempFolder();
    for (const [mode, options] of [[0o660, {}] as const, [0o600, { socketMode: 0o600 }] as const]) {
      const gateway = createTestGateway({ routes: () => {} });
      const path = folder.file("s");
      expect(await gateway.listen({ path, ...options })).toEqual({ address: path, port: 0 });
      expect(statSync(path).mode & 0o777).toBe(mode);
      await gateway.close();
      expect(existsSync(path)).toBe(false);
    }
  });

  test("is replaced by exactly one gateway if several start simultaneously", async () => {
    using folder = createTempFolder();
    const path = await createStaleSocket(folder);
    const gateways = Array.from({ length: 4 }, () => createTestGateway({ routes: () => {} }));
    const results = await Promise.allSettled(gateways.map((gateway) => gateway.listen({ path })));
    const listening = gateways.filter((_, i) => results[i]?.status === "fulfilled");
    expect(listening).toHaveLength(1);
    expect(readdirSync(folder.path)).toEqual(["s"]);
    // The socket at the path belongs to the gateway that listens, so closing that gateway removes it.
    await listening[0]?.close();
    expect(readdirSync(folder.path)).toEqual([]);
  });

  test("is not replaced if it is used or a regular file", async () => {
    using folder = createTempFolder();
    const [used, text] = [folder.file("used"), folder.file("text")];
    writeFileSync(text, "mine");
    const other = createServer().listen({ path: used });
    await once(other, "listening");
    for (const path of [used, text]) {
      const gateway = createTestGateway({ routes: () => {} });
      await expect(gateway.listen({ path })).rejects.toMatchObject({ code: "EADDRINUSE" });
      expect(existsSync(path)).toBe(true);
    }
    other.close();
  });

  test("cannot be combined with the PROXY protocol and TLS", async () => {
    using folder = createTempFolder();
    const gateway = createTestGateway({ routes: () => {} });
    await expect(gateway.listen({ path: folder.file("s"), proxyProtocol: true, tls: {} })).rejects.toThrow("TCP port");
  });
});
