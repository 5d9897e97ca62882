import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../support/process/child-program.ts";

/** The cells of the rows of a page's table whose header begins with a text. */
function tableOf(page: string, header: string): string[][] {
  const lines = readFileSync(join(projectFolder, page), "utf8").split("\n");
  const start = lines.findIndex((line) => line.startsWith(header));
  const length = lines.slice(start).findIndex((line) => !line.startsWith("|"));
  return lines.slice(start, start + length).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

// What the README calls a kind of call, and a server, in the words of docs/performance.md.
const tables: Readonly<Record<string, string>> = {
  REST: "| `DELETE /plants/7`, HTTP/1.1",
  "Connect JSON": "| DeletePlant as Connect JSON",
  gRPC: "| DeletePlant as gRPC",
};
const servers: Readonly<Record<string, RegExp>> = {
  plantstore: /^\*\*plantstore\*\*$/,
  "bare node": /, the floor$/,
  fastify: /^fastify$/,
  "grpc-js": /^grpc-js$/,
  "connect-node": /^connect-node$/,
};

const [head = [], , ...rows] = tableOf("README.md", "| | plantstore | bare node");
const figures = rows.flatMap(([call = "", ...cells]) =>
  cells
    .map((figure, index) => ({ call, server: head[index + 1] ?? "", figure }))
    .filter(({ figure }) => figure !== "–"),
);

test("the README has figures", () => {
  expect(figures.length).toBeGreaterThan(7);
});

test.each(figures)("$figure µs for $call by $server stands in docs/performance.md", ({ call, server, figure }) => {
  const row = tableOf("docs/performance.md", tables[call] ?? "none").find(([name = ""]) => servers[server]?.test(name));
  // Behind a figure may stand its multiple of the floor.
  expect(row?.[1]?.split(" ")[0]).toBe(figure);
});
