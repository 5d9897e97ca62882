import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
// oxfmt-ignore
import { createCertificate, createTempFolder, openHttp1, openHttp2, projectFolder, readOutcome, startNode, wireFormats
} from "@protoport/testing";
import { deletePlantRequest } from "../../../support/plants/delete-plant.ts";
import { runCommand } from "../../../support/process/run-command.ts";
import { bearer } from "../../../support/server/plant-server.ts";

test("embed.ts accepts a token from its file, counts requests, and drains", async () => {
  using folder = createTempFolder();
  const { out } = await runCommand(["token", "create", "embedder", "--file", folder.file("tokens")]);
  const program = [join(projectFolder, "examples/embed.ts"), "0"];
  await using server = startNode(program, folder.path);
  const [, baseUrl = ""] = await server.find(/plants at (\S+)/);
  const headers = { authorization: `Bearer ${out[0] ?? ""}`, connection: "close" };
  const statuses = [];
  for (const id of [1, 1, 10]) {
    const { status, body } = await fetch(`${baseUrl}/plants/${id}`, { method: "DELETE", headers });
    await body?.cancel();
    statuses.push(status);
  }
  server.process.kill("SIGTERM");
  expect({ exitCode: await server.end(), statuses }).toEqual({ exitCode: 0, statuses: [204, 400, 204] });
  expect(server.stdout()).toContain("3 responses sent");
});

test("connect-node.ts serves over TLS until SIGTERM, with a token from a file", async () => {
  using folder = createTempFolder();
  const { out } = await runCommand(["token", "create", "embedder", "--file", folder.file("tokens")]);
  const { cert, key } = createCertificate("localhost");
  writeFileSync(folder.file("cert.pem"), cert);
  writeFileSync(folder.file("key.pem"), key);
  await using server = startNode([join(projectFolder, "examples/connect-node.ts"), "0"], folder.path);
  const [, port = ""] = await server.find(/plants at https:\/\/127\.0\.0\.1:(\d+)/);
  const address = { address: "127.0.0.1", port: Number(port) };
  const tls = { ca: cert, servername: "localhost" };
  const header = [bearer(out[0] ?? "")];
  const outcomes = [];
  for (const format of [wireFormats.rest, wireFormats.rest, wireFormats.grpc, wireFormats.grpc]) {
    using connection = await openHttp2(address, tls);
    const plant = format === wireFormats.rest ? 1n : 2n;
    outcomes.push(readOutcome(format, await connection.exchange(deletePlantRequest(format, plant, header))).code);
  }
  using http1 = await openHttp1(address, tls);
  http1.request(deletePlantRequest(wireFormats.rest, 10n, header));
  const { httpStatus } = await http1.readResponse("DELETE");
  http1[Symbol.dispose]();
  server.process.kill("SIGTERM");
  const want = { exitCode: 0, outcomes: [0, 5, 0, 5], httpStatus: 204 };
  expect({ exitCode: await server.end(), outcomes, httpStatus }).toEqual(want);
});
