// Links from names in the definition, such as "library.v1.Shelf", to the page's views.
import { type Description, operationsOf } from "./description.js";
import { linkToOperation, linkToSchema } from "./route.js";

/** Returns a link to the RPC or message with a full name. The full name of a field links to the field's message. */
export function linkToName(description: Description, fullName: string): string | undefined {
  const operations = operationsOf(description);
  const rpcs = operations.map(({ id, object }) => ({ id, name: object["x-rpc"]?.procedure.slice(1) ?? "" }));
  const rpc = rpcs.find(({ name }) => name.replace("/", ".") === fullName);
  if (rpc !== undefined) return linkToOperation(rpc.id);
  // In the description, messages in the service packages are named without the package.
  const packages = new Set(rpcs.map(({ name }) => name.replace(/[^.]*$/, "")));
  const short = [...packages].flatMap((each) => (fullName.startsWith(each) ? [fullName.slice(each.length)] : []));
  const names = [fullName, ...short].flatMap((name) => [name, name.replace(/\.[^.]*$/, "")]);
  const schema = names.find((name) => Object.hasOwn(description.components?.schemas ?? {}, name));
  return schema === undefined ? undefined : linkToSchema(schema);
}
