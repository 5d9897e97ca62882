import { expect, test } from "vitest";
import { type CommandOutput, type Program, runProgram, UsageError } from "../src/index.ts";

// Programs with commands print help, and errors for invalid command lines.

// oxfmt-ignore
const program: Program<CommandOutput> = { name: "tool",
  about: "a tool.",
  version: "1.2.3",
  commands: [{ name: "grow", summary: "grow a tree", operands: [{ name: "TREE", about: "its name" }],
      flags: { speed: { value: "NUMBER", about: `how fast ${"x ".repeat(80)}` }, quiet: { about: "prints nothing" } },
      run: () => Promise.reject(new Error("no water")) }, { name: "list all", summary: "list trees",
      settings: { flags: { port: { value: "VALUE", about: "a port" } }, help: ["Settings:"] },
      run: (flags, _operands, { out }) => {
        if (flags["port"] === "0") throw new UsageError("--port must not be 0");
        out(String(flags["port"]));
        return Promise.resolve(7);
      } }],
  exitCodes: { 0: "success", 7: "listed" },
  fail: (reason, { err }) => {
    err(String(reason));
    return 1;
  },
};

async function run(...words: readonly string[]): Promise<{ exitCode: number; out: string[]; err: string[] }> {
  const [out, err]: [string[], string[]] = [[], []];
  const terminal = { out: (line: string) => void out.push(line), err: (line: string) => void err.push(line) };
  return { exitCode: await runProgram(program, words, terminal), out, err };
}

test("help lists the commands, their flags, and the exit codes", async () => {
  const { out } = await run("--help");
  expect(out).toEqual(expect.arrayContaining(["  grow      grow a tree", "Exit codes: 0 success, 7 listed."]));
  const help = await run("help", "grow");
  expect([help, help.out[0]]).toEqual([await run("grow", "-h"), "tool grow TREE [--speed NUMBER] [--quiet]"]);
  expect(Math.max(...help.out.map((line) => line.length))).toBeLessThanOrEqual(120);
  expect((await run("list", "all", "--help")).out).toEqual(["tool list all [--SETTING VALUE]...", "", "Settings:"]);
});

test.each([
  [[], "a command is missing", "tool"],
  [["growe"], 'unknown command "growe", did you mean "grow"?', "tool"],
  [["list"], 'unknown command "list", did you mean "list all"?', "tool"],
  [["grow"], "usage: tool grow TREE [--speed NUMBER] [--quiet]", "tool grow"],
  [["list", "all", "--prt"], 'unknown flag "--prt" of "list all", did you mean "--port"?', "tool list all"],
  [["list", "all", "--port", "0"], "--port must not be 0", "tool list all"],
])('the arguments "$0" are refused with the reason and a hint', async (words, reason, hint) => {
  expect(await run(...words)).toEqual({ exitCode: 2, out: [], err: [`tool: ${reason}`, `Try '${hint} --help'.`] });
});

test("a command's run function determines the exit code", async () => {
  expect(await run("list", "all", "--port", "80")).toEqual({ exitCode: 7, out: ["80"], err: [] });
  expect(await run("grow", "rose")).toEqual({ exitCode: 1, out: [], err: ["Error: no water"] });
  expect(await run("-v")).toEqual({ exitCode: 0, out: ["1.2.3"], err: [] });
});
