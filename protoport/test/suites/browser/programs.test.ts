import { writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { createOpenApi } from "../../../gateway/src/openapi/index.ts";
import { createDocsPage } from "../../../docs-page/src/index.ts";
import { createReflectionService, ServerReflection } from "../../../gateway/src/reflection/index.ts";
import { FileService } from "../../../testing/src/gen/files/v1/files_pb.ts";
import { KitchenSink } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { Shelves } from "../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
// oxfmt-ignore
import { buildLimitMs, buildStep, createTempFolder, kitchenSinkOptions, projectFolder, shared
} from "@protoport/testing";
import { fillForm } from "./fill-form.ts";
import { openBrowser, startGateway } from "./open-browser.ts";

// Runs the programs that the page shows. Each must send the same request as the form.

const languages: readonly { readonly name: string; readonly file: string; readonly command: readonly string[] }[] = [
  { name: "curl", file: "program.sh", command: ["sh"] },
  { name: "fetch", file: "program.mjs", command: [process.execPath] },
  { name: "Python", file: "program.py", command: ["python3"] },
  { name: "Go", file: "program.go", command: ["go", "run"] },
  { name: "grpcurl", file: "program.sh", command: ["sh"] },
  { name: "buf", file: "program.sh", command: ["sh"] },
];

// Characters that shells, JSON and programming languages quote in different ways.
const text = `it's "ü" \\ $HOME \`id\` %41`;

const authorizations = new Set<string | null>();
const services = [KitchenSink, Shelves, FileService];
const info = { title: "Kitchen sink", version: "7" };
const securitySchemes = { bearer: { type: "http", scheme: "bearer" } } as const;
const description = createOpenApi(services, { operationIds: "rpc", info, securitySchemes });
const browser = shared(() => openBrowser());
let page: Page;
const gateway = shared(() =>
  startGateway({
    ...kitchenSinkOptions,
    routes: (router) => {
      kitchenSinkOptions.routes(router);
      router.service(FileService, { echo: (body) => body });
      router.service(ServerReflection, createReflectionService([...services, ServerReflection]));
    },
    // The service's root is an RPC, so the page is at another path.
    endpoints: createDocsPage({ document: () => JSON.stringify(description), open: true }).filter(
      ({ path }) => path !== "/",
    ),
    onRequest: ({ procedure, authorization }) => {
      if (procedure !== undefined) authorizations.add(authorization);
    },
  }),
);
beforeAll(async () => void (page = await browser.newPage()));

async function runProgram({ name, file, command }: (typeof languages)[number]): Promise<string> {
  using folder = createTempFolder();
  writeFileSync(folder.file("leaf.txt"), text);
  await page.getByLabel("Language").selectOption(name);
  writeFileSync(folder.file(file), await page.locator(".command").innerText());
  const [program = "", ...args] = command;
  const bin = join(projectFolder, "node_modules/.bin");
  return await buildStep(program, [...args, folder.file(file)], {
    folder: folder.path,
    environment: { TOKEN: "a token", PATH: `${bin}${delimiter}${process.env["PATH"]}` },
  });
}

describe.each(languages)("the program in $name", (language) => {
  test.each(
    // oxfmt-ignore
    [
      { what: "path and query parameters", operation: "segments",
        fields: { shelf: "7", book: "8", fBool: "true", fInt64: "9007199254740993", tags: "a\nb" },
        want: ["shelves/7/books/8", "9007199254740993", "fBool"] },
      { what: "a path parameter and a body", operation: "update",
        fields: { nested_text: "leaf", Body: JSON.stringify({ tags: [text], number: "9007199254740993" }) },
        want: ["leaf", JSON.stringify(text).slice(1, -1), "9007199254740993"] },
    ],
  )("sends $what with the token", { timeout: buildLimitMs }, async ({ operation, fields, want }) => {
    await page.goto(`${gateway.baseUrl}/docs#/operations/${operation}`);
    await page.getByRole("heading", { level: 1, name: operation }).waitFor();
    await fillForm(page, fields);
    authorizations.clear();
    const output = await runProgram(language);
    for (const part of want) expect(output).toContain(part);
    expect([...authorizations]).toEqual(["Bearer a token"]);
  });
});

// grpcurl and buf cannot send a file.
test.each(languages.slice(0, 4))(
  "the program in $name sends a selected file with its content type",
  { timeout: buildLimitMs },
  async (language) => {
    await page.goto(`${gateway.baseUrl}/docs#/operations/echo`);
    await page.getByRole("heading", { level: 1, name: "echo" }).waitFor();
    const file = { name: "leaf.txt", mimeType: "text/plain", buffer: Buffer.from(text) };
    await page.getByLabel("Body, a file").setInputFiles(file);
    expect(await page.locator(".command").innerText()).toContain("text/plain");
    expect(await runProgram(language)).toContain(text);
  },
);
