import { openSignup } from "./fetch-signup.ts";

const handle = await openSignup({});
const worker: { fetch(request: Request): Promise<Response> } = { fetch: (request) => handle(request) };
// oxlint-disable-next-line import/no-default-export -- runtimes require a default export
export default worker;
