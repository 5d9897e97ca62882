// The greenhouse as a worker, for workerd and Cloudflare.
import { gateway } from "./gateway.ts";

const worker: { fetch(request: Request): Promise<Response> } = {
  fetch: (request) => {
    const address = request.headers.get("cf-connecting-ip");
    return gateway.fetch(request, address === null ? {} : { peer: { address, port: 0 } });
  },
};
// oxlint-disable-next-line import/no-default-export -- runtimes require a default export
export default worker;
