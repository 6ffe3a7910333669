// Prints an access token of a client, obtained by npm `openid-client`: an independent check of the authorization server.
// usage: node mint.mjs ISSUER CLIENT SECRET RESOURCE
import * as client from 'openid-client';

const [issuer, id, secret, resource] = process.argv.slice(2);
const config = await client.discovery(new URL(issuer), id, undefined, client.ClientSecretBasic(secret), {
  execute: [client.allowInsecureRequests],
});
const answer = await client.clientCredentialsGrant(config, { resource });
console.log(answer.access_token);
