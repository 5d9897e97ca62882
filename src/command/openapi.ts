import { createPlantStoreOpenApi, settings } from "../server/index.ts";
import { exitCode, type Command, textOf, UsageError } from "./command.ts";

const { publicUrl, host, port } = settings;

/** The `openapi` command, which prints the OpenAPI description for the REST interface. */
export const openApiCommand: Command = {
  name: "openapi",
  summary: "print the OpenAPI 3.1 description of the REST interface",
  flags: {
    "public-url": {
      value: "URL",
      about: `base URL for clients; default ${publicUrl.variable}, or http://${host.fallback}:${port.fallback}`,
    },
  },
  run: async (flags, _operands, terminal) => {
    const flag = textOf(flags["public-url"]);
    const url = flag ?? (terminal.environment[publicUrl.variable] || `http://${host.fallback}:${port.fallback}`);
    const reading = publicUrl.read(url);
    const source = flag === undefined ? publicUrl.variable : "--public-url";
    if (reading.kind === "problems") throw new UsageError(`${source} must ${reading.problems.join(", ")}`);
    // Removes trailing slashes, because the paths start with a slash.
    terminal.out(JSON.stringify(createPlantStoreOpenApi(reading.value.href.replace(/\/+$/, "")), undefined, 2));
    return exitCode.ok;
  },
};
