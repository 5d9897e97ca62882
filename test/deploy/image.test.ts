import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildImage, type BuiltImage } from "../support/deploy/build-image.ts";
import { buildLimitMs } from "../support/process/build-step.ts";
import { projectFolder } from "../support/process/child-program.ts";
import { startProgram } from "../support/process/command-line.ts";
import { baseUrlOf, deletePlant, serveToken } from "../support/process/serve-command.ts";
import { createTempFolder, type TempFolder } from "../support/process/temp-folder.ts";

// The steps of deploy/Dockerfile, without a container.

const dockerfile = join(projectFolder, "deploy/Dockerfile");

describe("the image", () => {
  let folder: TempFolder;
  let image: BuiltImage;

  beforeAll(async () => {
    folder = createTempFolder();
    image = await buildImage(dockerfile, folder.path);
  }, buildLimitMs);
  afterAll(() => folder[Symbol.dispose]());

  test("serves, and drains when it is told to stop", async () => {
    const [program = "", ...args] = image.command;
    const environment = {
      ...image.environment,
      HOST: "127.0.0.1",
      PORT: "0",
      DATABASE_URL: `sqlite:${folder.file("plants.db")}`,
      PLANTSTORE_TOKENS: serveToken,
      PLANTSTORE_DRAIN_DELAY_MS: "0",
    };
    await using migrating = startProgram(program, [...args.slice(0, -1), "migrate"], image.folder, environment);
    expect(await migrating.end()).toBe(0);
    await using server = startProgram(program, args, image.folder, environment);
    expect(await deletePlant(await baseUrlOf(server), 1)).toBe(400);
    server.process.kill("SIGTERM");
    expect(await server.end()).toBe(0);
    expect(server.stderr()).toContain('"msg":"stopped"');
  });

  test("has the packages that the server needs and none that builds it", () => {
    const installed = readdirSync(join(image.folder, "node_modules"));
    expect(installed).toEqual(expect.arrayContaining(["pg", "pino"]));
    expect(installed.filter((name) => /typescript|rolldown|vitest|oxlint|plantstore/.test(name))).toEqual([]);
  });
});

test("a change of the source leaves the layers of the packages as they are", () => {
  const steps = readFileSync(dockerfile, "utf8").split("\n");
  const beforeSource = steps.slice(0, steps.indexOf("COPY . ."));
  const copied = beforeSource
    .filter((step) => step.startsWith("COPY "))
    .flatMap((step) => step.split(" ").slice(1, -1));
  expect(beforeSource.filter((step) => step.startsWith("RUN npm ci"))).toHaveLength(2);
  expect(copied.filter((name) => !/(^|\/)package(-lock)?\.json$/.test(name))).toEqual([]);
});
