import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { blocksRunBy, pageBlocks } from "../../support/docs/page-blocks.ts";
import { createTempFolder, freePort, projectFolder, startNode } from "@protoport/testing/process";

// Runs the blocks in protoport/docs/how-to/grpc-handlers.md for NestJS, each in an application with a controller.

const framework = createRequire(join(projectFolder, "protoport/examples/frameworks/package.json"));
const urlOf = (path: string): string => JSON.stringify(pathToFileURL(path).href);

/** Replaces the packages that a block imports by their files, and its ports. */
const inCheckout = (block: string, port: number): string =>
  block
    .replaceAll(/"@protoport\/grpc-handlers\/(\w+)"/g, (_specifier, name: string) =>
      urlOf(join(projectFolder, `protoport/grpc-handlers/src/${name}.ts`)),
    )
    .replaceAll(/"(@nestjs\/[\w-]+)"/g, (_specifier, name: string) => urlOf(framework.resolve(name)))
    .replaceAll(/port: 8080|listen\(3000\)/g, (use) => use.replace(/\d+/, String(port)));

const before = `import { NestFactory } from "@nestjs/core";
import { Controller, Module } from "@nestjs/common";
import { GrpcMethod } from "@nestjs/microservices";
class GreetController {
  greet({ name }) {
    return { text: \`Hello \${name}\` };
  }
}
class AppModule {}
const { prototype } = GreetController;
Controller()(GreetController);
GrpcMethod("GreetService", "Greet")(prototype, "greet", Object.getOwnPropertyDescriptor(prototype, "greet"));
Module({ controllers: [GreetController] })(AppModule);
const app = await NestFactory.create(AppModule, { logger: false });
const loader = { includeDirs: [".", ${JSON.stringify(join(projectFolder, "protoport/gateway/proto"))}] };
`;
/** What the first block declares. */
const declared = `import { ServerGrpc } from "@nestjs/microservices";
const options = { package: "greet.v1", protoPath: "greet.proto", loader };
`;
const definition = pageBlocks.find(
  ({ page, text }) => page === "protoport/README.md" && text.includes("service GreetService"),
);
const blocks = blocksRunBy("protoport/test/suites/frameworks/documented-nest.test.ts");

test.each(blocks.map(({ text }) => text))("documented program %# responds to a REST call", async (block) => {
  using folder = createTempFolder();
  const port = await freePort();
  const call = `console.log(await (await fetch("http://127.0.0.1:${port}/greetings/Ada")).text());\nprocess.exit();`;
  const program = [before, block.includes("import { ServerGrpc }") ? "" : declared, block, call].join("\n");
  writeFileSync(folder.file("greet.proto"), definition?.text ?? "");
  writeFileSync(folder.file("application.mts"), inCheckout(program, port));
  await using running = startNode([folder.file("application.mts")], folder.path);
  const [response] = await running.find(/\{.*\}/);
  expect(response).toBe('{"text":"Hello Ada"}');
});
