// Calls all operations that require only names with an openapi-generator client, and prints how many there are.
import { readFileSync } from "node:fs";

const [, , code = "", document = "", basePath] = process.argv;
const client = await import(code);
const camelCase = (name: string) => name.replace(/_(\w)/g, (_, first) => first.toUpperCase());
let called = 0;
for (const path of Object.values<any>(JSON.parse(readFileSync(document, "utf8")).paths)) {
  for (const { operationId, tags, parameters = [], requestBody } of Object.values<any>(path)) {
    const names = parameters.filter((parameter: any) => parameter.required);
    const isNeeded = ({ schema, in: place }: any): boolean => place !== "path" || schema.type !== "string";
    if (requestBody !== undefined || names.some(isNeeded)) continue;
    const api = new client[`${tags[0]}Api`](new client.Configuration({ basePath }));
    const method = camelCase(operationId[0].toLowerCase() + operationId.slice(1));
    await api[method](Object.fromEntries(names.map(({ name }: any) => [camelCase(name), "x"])));
    called++;
  }
}
console.log(called);
