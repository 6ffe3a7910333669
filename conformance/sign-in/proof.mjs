// What an MCP server asks of tokens that are bound to a key (RFC 9449): express middleware, for tests only.
//
// Every request needs a proof of its own, with the nonce of the moment. `verify` returns what is known of a token, with the
// thumbprint of its key, or throws. What is refused is written to standard output.
import { createHash, randomUUID } from 'node:crypto';

export function requireProof({ jose, verify, resource, metadata }) {
  // The nonce changes often, so that requests at one moment have to be proven again.
  let nonce = randomUUID();
  setInterval(() => { nonce = randomUUID(); }, 1000).unref();
  const used = new Set();
  return async (request, response, next) => {
    const refuse = (error, why) => {
      console.log(JSON.stringify({ refused: error, why }));
      response.set('WWW-Authenticate', `DPoP algs="ES256", error="${error}", resource_metadata="${metadata}"`);
      response.status(401).end();
    };
    const [scheme, token] = (request.get('authorization') ?? '').split(' ');
    if (scheme !== 'DPoP' || !token) return refuse('invalid_token', `the scheme is ${scheme || 'missing'}`);
    try {
      const { key, ...auth } = await verify(token);
      const proof = await jose.jwtVerify(request.get('dpop') ?? '', jose.EmbeddedJWK, { typ: 'dpop+jwt', algorithms: ['ES256'], maxTokenAge: 60 });
      const { htm, htu, ath, jti, nonce: shown } = proof.payload;
      const isRight = htm === request.method && htu === resource && ath === createHash('sha256').update(token).digest('base64url');
      const own = await jose.calculateJwkThumbprint(proof.protectedHeader.jwk);
      if (!isRight || !key || own !== key) return refuse('invalid_token', 'the proof is for something else');
      if (shown !== nonce) {
        response.set('DPoP-Nonce', nonce);
        return refuse('use_dpop_nonce', 'the nonce');
      }
      if (!jti || used.has(jti)) return refuse('invalid_token', 'the proof was used before');
      used.add(jti);
      request.auth = auth;
      return next();
    } catch (error) {
      return refuse('invalid_token', error.message);
    }
  };
}
