import { credentials } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { createPlantClient } from "../../../src/client/index.ts";
import { buildStep, createTempFolder } from "@protoport/testing/process";
import { serve, serveToken } from "../../support/process/serve-command.ts";

test("curl and a gRPC client reach a server on a Unix socket", async () => {
  using folder = createTempFolder();
  const path = folder.file("http.sock");
  await using server = serve(folder, { HOST: `unix:${path}` });
  await server.find(/"msg":"listening"/);
  // oxfmt-ignore
  const args = ["-sS", "-w", " %{http_code}", "--unix-socket", path, "http://localhost/livez"];
  const output = await buildStep("curl", args);
  expect(output).toMatch(/ 200$/);
  const address = `unix:${path}`;
  const plants = createPlantClient({ address, token: serveToken, credentials: credentials.createInsecure() });
  expect(await plants.delete(1n)).toBe("not-found");
  plants.close();
  expect(await server.stop("SIGTERM")).toBe(0);
});
