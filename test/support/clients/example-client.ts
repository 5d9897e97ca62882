import { cpSync, readFileSync, rmSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildLimitMs, buildStep } from "../../../protoport/testing/src/process/build-step.ts";
import { projectFolder } from "../../../protoport/testing/src/process/child-program.ts";
import { toolsFolder } from "../../../protoport/testing/src/process/tools-folder.ts";
import { tokens } from "../server/plant-server.ts";
import { type ServerPair, startServerPair } from "../server/server-pair.ts";
import { responseLimitMs, authorityOf } from "./client-program.ts";

/** A project in `examples/clients/`. */
export interface ExampleClient {
  readonly language: string;
  /** The program's file, whose first comment contains the commands. */
  readonly program: string;
  /** Environment variables for the commands in addition to PATH, such as the authority to trust. */
  readonly environment?: (authorityFile: string) => Promise<Readonly<Record<string, string>>>;
}

const commandLine = /^[\s/!*]+((?:buf|go|python|mvn|java|cargo) .*)$/gm;

/** Tests the commands in the project's first comment. */
export function describeExample({ language, program, environment }: ExampleClient): void {
  describe(`examples/clients/${language}`, { timeout: responseLimitMs }, () => {
    const text = readFileSync(join(projectFolder, "examples/clients", language, program), "utf8");
    const commands = [...text.matchAll(commandLine)].map(([, command = ""]) => command);
    const opened = new AsyncDisposableStack();
    let servers: ServerPair;
    let run: (command: string) => Promise<string>;

    beforeAll(async () => {
      servers = opened.use(await startServerPair(new Set([42n])));
      const folder = layOut(language);
      const settings = { PATH: path, ...(await environment?.(servers.authorityFile)) };
      // Standard output only, because tools log to standard error.
      run = (command) => buildStep("bash", ["-c", `${command} 2>/dev/null`], { folder, environment: settings });
      for (const command of commands.slice(0, -1)) await run(command);
    }, buildLimitMs);
    afterAll(() => opened.disposeAsync());

    test("deletes plant 42 over TLS, and then gets NOT_FOUND over cleartext", async () => {
      const command = (commands.at(-1) ?? "").replace("TOKEN", tokens.good);
      const secure = command
        .replace("http:", "https:")
        .replace("127.0.0.1:8080", authorityOf("localhost", servers.secure));
      expect(await run(secure)).toBe("plant 42 is deleted\n");
      const cleartext = command.replace("127.0.0.1:8080", authorityOf("127.0.0.1", servers.cleartext));
      expect(await run(cleartext)).toBe("there is no plant 42\n");
    });
  });
}

const path = [join(projectFolder, "node_modules/.bin"), process.env["PATH"]].join(delimiter);

/** Copies the project to a folder outside the checkout, with the same relative path to the definitions. */
function layOut(language: string): string {
  const root = toolsFolder(`example-${language}`);
  // Removes imports that an earlier run has copied next to the definition, which would otherwise be duplicates.
  rmSync(join(root, "proto"), { recursive: true, force: true });
  for (const part of ["proto", "protoport/gateway/proto", "buf.yaml", `examples/clients/${language}`])
    cpSync(join(projectFolder, part), join(root, part), { recursive: true, preserveTimestamps: true });
  return join(root, "examples/clients", language);
}
