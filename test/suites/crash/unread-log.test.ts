import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { createTempFolder, within } from "@protoport/testing/process";
import { baseUrlOf, deletePlant, runCommand, serve } from "../../support/process/index.ts";

test("a server exits although no process reads its log", async () => {
  using folder = createTempFolder();
  await using server = serve(folder);
  const baseUrl = await baseUrlOf(server);
  server.process.stderr.pause();
  // More lines than a pipe buffers.
  for (let asked = 0; asked < 2000; asked += 100)
    await Promise.all(Array.from({ length: 100 }, () => deletePlant(baseUrl, 1, "a-token-that-nobody-knows")));
  const ended = once(server.process, "exit");
  server.process.kill("SIGTERM");
  expect(await within(ended, "the end of the server")).toEqual([0, null]);
  server.process.stderr.resume();
});

test("deletions are logged although refused requests fill the unread log", async () => {
  using folder = createTempFolder();
  const database = { DATABASE_URL: `sqlite:${folder.file("plants.db")}` };
  await runCommand(["migrate"], database);
  await runCommand(["import"], database, "7\n");
  await using server = serve(folder);
  const baseUrl = await baseUrlOf(server);
  server.process.stderr.pause();
  const refused = 12_000;
  const socket = connect(Number(new URL(baseUrl).port), "127.0.0.1");
  socket.write(`GET /${"x".repeat(255)} HTTP/1.1\r\nhost: localhost\r\n\r\n`.repeat(refused));
  let answered = 0;
  for await (const bytes of socket) {
    answered += String(bytes).split("HTTP/1.1 400").length - 1;
    if (answered >= refused - 10) break;
  }
  expect(await deletePlant(baseUrl, 7)).toBe(204);
  server.process.stderr.resume();
  await server.find(/"plantId":"7"/);
  expect(await server.stop("SIGTERM")).toBe(0);
  expect(server.stderr()).toMatch(/"dropped":\d+/);
});
