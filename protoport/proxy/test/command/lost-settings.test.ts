import { expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { descriptorSetOf } from "../../../testing/src/gateway/descriptor-set.ts";
import { ProxyCommand } from "../../../testing/src/gateway/proxy-command.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";

// A configuration file that is read while it is written may lack entries.

const greenhouse = GreenhouseService.typeName;

test("a reload that loses a scope entry or validation is refused", async () => {
  using folder = createTempFolder();
  const descriptors = folder.write("greenhouse.binpb", descriptorSetOf(GreenhouseService.file));
  const tokens = [{ file: folder.write("token", "a-token-of-a-shop-2026") }];
  const configure = (scopes: object, more: { open?: readonly string[]; validate?: boolean } = {}): string => {
    const { open = [], validate = true } = more;
    const upstreams = [{ addresses: ["http://127.0.0.1:1"], descriptors }];
    const settings = { listen: { port: 0 }, drain: { delayMs: 0, timeoutMs: 0 }, upstreams, validate };
    return folder.write("proxy.json", JSON.stringify({ ...settings, authentication: { tokens, scopes, open } }));
  };
  const all = { [`${greenhouse}.*`]: "read" };
  const entry = { [`${greenhouse}.GetReading`]: "admin" };
  await using command = new ProxyCommand(["--config", configure({ ...all, ...entry, "other.v1.*": "a" })]);
  await command.serving;
  const reload = async (): Promise<string | undefined> => {
    const from = command.lines.length;
    command.hangUp();
    return (await command.waitForLine(/^(?:cannot reload the configuration|configuration reloaded)/, from))?.input;
  };
  configure(all);
  const want = `authentication.scopes must keep ${greenhouse}.GetReading; restart to require fewer scopes`;
  expect(await reload()).toContain(want);
  configure({ ...all, ...entry }, { validate: false });
  expect(await reload()).toContain("validate is missing; restart to serve without validate");
  // Entries may be changed, merged or replaced by open RPCs. Other entries match no served RPC.
  for (const [scopes, open] of [
    [{ ...all, ...entry }, []],
    [{ [`${greenhouse}.*`]: "admin read" }, []],
    [{ [`${greenhouse}.*`]: "write" }, []],
    [{ "shop.v1.*": "a" }, [greenhouse]],
  ] as const) {
    configure(scopes, { open });
    expect(await reload()).toBe("configuration reloaded");
  }
});
