import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { exchangeHttp1 } from "@protoport/testing/http";
import { createTempFolder, projectFolder, startNode } from "@protoport/testing/process";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";

// Runs the blocks with which protoport/docs/how-to/frameworks.md mounts the gateway, each in an application that uses the framework
// in its comment.

const framework = createRequire(join(projectFolder, "protoport/examples/frameworks/package.json"));
const urlOf = (path: string): string => JSON.stringify(pathToFileURL(path).href);

const nest = {
  before: `import { NestFactory } from ${urlOf(framework.resolve("@nestjs/core"))};
import { Module } from ${urlOf(framework.resolve("@nestjs/common"))};
import { GreenhouseService } from ${urlOf(join(projectFolder, "protoport/examples/gen/greenhouse/v1/greenhouse_pb.ts"))};
class Greenhouse {
  constructor() {
    routes({ service: (_service, rpcs) => Object.assign(this, rpcs) });
  }
}`,
  after: `app.getHttpAdapter().get("/", (request, response) => void response.send("a page"));
await app.init();
await app.getHttpAdapter().getInstance().ready?.();
announce(app.getHttpServer());`,
};

/** The code around a block creates an application with another page, which listens on a free port. */
const applications = {
  Express: {
    before: `import { createServer } from "node:http";
import express from ${urlOf(framework.resolve("express"))};
const app = express();`,
    after: `app.get("/", (request, response) => void response.send("a page"));
announce(createServer(app));`,
  },
  Fastify: {
    before: `import fastify from ${urlOf(framework.resolve("fastify"))};
const app = fastify();`,
    after: `app.get("/", (request, reply) => reply.send("a page"));
await app.ready();
announce(app.server);`,
  },
  NestJS: nest,
  "NestJS with the plugin for Fastify": {
    ...nest,
    before: `${nest.before}
class AppModule {}
Module({ providers: [Greenhouse] })(AppModule);`,
  },
} as const;

const imports = `import { announce } from ${urlOf(join(projectFolder, "protoport/examples/servers/announce.ts"))};
import { routes } from ${urlOf(join(projectFolder, "protoport/examples/servers/greenhouse.ts"))};`;

/** Replaces the packages that a block imports by their files. */
const inCheckout = (block: string): string =>
  block
    .replace(/"@protoport\/frameworks\/(\w+)"/, (_specifier, name: string) =>
      urlOf(join(projectFolder, `protoport/frameworks/src/${name}.ts`)),
    )
    .replace(/"(@nestjs\/[\w-]+)"/, (_specifier, name: string) => urlOf(framework.resolve(name)));

function isDocumented(name: string | undefined): name is keyof typeof applications {
  return name !== undefined && name in applications;
}

const blocks = blocksRunBy("protoport/test/suites/frameworks/documented-mounting.test.ts").map(({ text }) => text);

test.each(blocks)("documented program %# serves an RPC over REST and the application's page", async (block) => {
  const name = /\/\/ (\w[\w ]*)(?:;|$)/m.exec(block)?.[1];
  if (!isDocumented(name)) throw new Error("the block does not name its framework");
  using folder = createTempFolder();
  const { before, after } = applications[name];
  writeFileSync(folder.file("application.mts"), [imports, before, inCheckout(block), after].join("\n"));
  const program = [folder.file("application.mts"), "0"];
  await using running = startNode(program, folder.path);
  const [, address = "", port = ""] = await running.find(/http:\/\/([\d.]+):(\d+)/);
  const getText = async (path: string): Promise<string> =>
    String((await exchangeHttp1({ address, port: Number(port) }, { httpMethod: "GET", path, header: [] })).body);
  expect(JSON.parse(await getText("/sensors/palm/reading"))).toEqual({ sensor: "palm", degreesCelsius: 21 });
  expect(await getText("/")).toBe("a page");
});

test("the page contains a program for each framework", () =>
  expect(blocks).toHaveLength(Object.keys(applications).length));
