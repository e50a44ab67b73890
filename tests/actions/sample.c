/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue of the tests; see sample.h. Documents are written with ' for ". */
#include "tests/actions/sample.h"

#include "lib/base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#define CAPABILITY                                                                         \
	"'capability':{'concurrent':[409],'definite':[400,404],'failure_replay':'stored'," \
	"'key':{'format':'raw','header':'Idempotency-Key'},'key_window_ms':86400000,"      \
	"'lookup':{'by':'key','consistency_ms':500,'failed':['failed'],'field':'status',"  \
	"'list':'data','path':['v1','executions'],"                                        \
	"'query':[{'name':'key','value':{'host':'key'}}],'succeeded':['succeeded']},"      \
	"'mismatch':'error','not_processed':[425,429]},"

#define PROVIDER(capability)                                                              \
	"'provider':{'account':'acct_1'," capability                                      \
	"'credential':{'header':'Authorization','prefix':'Bearer ','secret':'shop-key'}," \
	"'environment':'test','name':'shop',"                                             \
	"'origin':{'host':'provider.test','port':PORT,'tls':false},"                      \
	"'response_max':65536,'timeout_ms':3000},"

#define ORDER_ID                                                                         \
	"{'identifier':true,'max':12,'min':1,'name':'order_id','pattern':'[0-9]{1,12}'," \
	"'type':'string'}"

static const struct {
	const char *name, *document;
} documents[SAMPLE_OPERATIONS] = {
	{"note", "{'approval':{'decide_within_ms':600000,'dispatch_within_ms':300000,'quorum':0},"
		 "'describe':'Keep a draft of an answer beside the ticket','effect':'draft',"
		 "'name':'note','parameters':["
		 "{'max':4000,'min':1,'multiline':true,'name':'text','type':'string'}],"
		 "'request':{'body':{'object':[{'name':'text','value':{'argument':'text'}}]},"
		 "'encoding':'json','method':'POST',"
		 "'path':['v1','tenants',{'host':'tenant'},'notes']," PROVIDER(
			 CAPABILITY) "'receipt':[{'field':'id','name':'reference'}],'success':[201]"
				     "},'version':1}"},
	{"order_status",
		"{'approval':{'decide_within_ms':600000,'dispatch_within_ms':300000,'quorum':0},"
		"'describe':'Read the state of an order','effect':'read','name':'order_status',"
		"'parameters':[" ORDER_ID "],"
		"'request':{'encoding':'none','method':'GET',"
		"'path':['v1','orders',{'argument':'order_id'}]," PROVIDER(
			"") "'receipt':[{'field':'paid_cents','name':'paid_cents'},"
			    "{'field':'status','name':'status'}],'success':[200]},'version':1}"},
	{"refund",
		"{'amount':{'argument':'cents','currency':'EUR','exponent':2},"
		"'approval':{'decide_within_ms':600000,'dispatch_within_ms':300000,'quorum':1,"
		"'tiers':[{'above':100000,'quorum':2,'roles':['lead']}]},"
		"'budgets':{'task_amount':200000,'task_uses':5,'tenant_day_amount':1000000,"
		"'tenant_day_uses':50},"
		"'describe':'Pay money of an order back','effect':'irreversible','name':'refund',"
		"'parameters':[{'max':500000,'min':1,'name':'cents','type':'integer'},"
		"{'max':500,'min':1,'multiline':true,'name':'memo','optional':true,"
		"'type':'string'}," ORDER_ID ","
		"{'default':'other','name':'reason','type':'enum',"
		"'values':['damaged','late','other']}],"
		"'request':{'body':{'object':[{'name':'amount','value':{'argument':'cents'}},"
		"{'name':'currency','value':{'literal':'EUR'}},"
		"{'name':'memo','value':{'argument':'memo'}},"
		"{'name':'reason','value':{'argument':'reason'}}]},"
		"'echo':[{'argument':'cents','field':'amount'}],"
		"'encoding':'json','method':'POST',"
		"'path':['v1','orders',{'argument':'order_id'},'refunds'],"
		"'pending':[202]," PROVIDER(
			CAPABILITY) "'receipt':[{'field':'id','name':'reference'},{'field':'status'"
				    ",'name':'status'}],"
				    "'success':[200,201]},"
				    "'verify':{'facts':[{'field':'paid_cents','name':'order.paid_"
				    "cents'},"
				    "{'field':'status','name':'order.status'},"
				    "{'field':'tenant','name':'order.tenant'}],"
				    "'path':['v1','orders',{'argument':'order_id'}]," PROVIDER(
					    "") "'require':[{'left':{'fact':'order.tenant'},'op':'"
						"eq','right':{'host':'tenant'}},"
						"{'left':{'fact':'order.paid_cents'},'op':'ge','"
						"right':{'argument':'cents'}},"
						"{'left':{'fact':'order.status'},'op':'in',"
						"'right':{'list':['paid','shipped']}}]},'version':"
						"1}"},
	{"reply",
		"{'approval':{'decide_within_ms':600000,'dispatch_within_ms':300000,'quorum':1},"
		"'describe':'Send an answer to the customer','effect':'external','name':'reply',"
		"'parameters':[{'max':4000,'min':1,'multiline':true,'name':'body','type':'string'},"
		"{'identifier':true,'max':128,'min':3,'name':'recipient',"
		"'pattern':'[a-z0-9._+\\\\-]+@[a-z0-9.\\\\-]+','type':'string'},"
		"{'max':200,'min':1,'name':'subject','type':'string'}],"
		"'request':{'body':{'object':[{'name':'to','value':{'argument':'recipient'}},"
		"{'name':'subject','value':{'argument':'subject'}},"
		"{'name':'body','value':{'argument':'body'}}]},"
		"'encoding':'json','method':'POST','path':['v1','messages']," PROVIDER(
			CAPABILITY) "'receipt':[{'field':'id','name':'reference'}],'success':[201]}"
				    ",'version':1}"},
};

/* ' becomes ", PORT the number. */
static void
written(const char *text, uint16_t port, struct buf *out)
{
	while (*text != 0) {
		if (strncmp(text, "PORT", 4) == 0) {
			buf_addf(out, "%u", port);
			text += 4;
			continue;
		}
		buf_add_byte(out, (uint8_t)(*text == '\'' ? '"' : *text));
		text++;
	}
}

void
sample_document(const char *name, uint16_t port, struct buf *out)
{
	for (size_t i = 0; i < SAMPLE_OPERATIONS; i++) {
		if (strcmp(documents[i].name, name) == 0) {
			written(documents[i].document, port, out);
			must(buf_check(out) == 0);
			return;
		}
	}
	must(0);
}

int
sample_fd(struct view bytes, int seals)
{
	int fd = memfd_create("catalogue", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct err err;

	must(fd >= 0);
	must(fd_write_all(fd, bytes.p, bytes.n, &err) == 0);
	must(seals == 0 || fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

int
sample_catalogue_fd(uint16_t port)
{
	auto_buf struct buf all = {.max = CATALOGUE_BYTES_MAX};

	for (size_t i = 0; i < SAMPLE_OPERATIONS; i++) {
		auto_buf struct buf one = {.max = OPERATION_BYTES_MAX};

		written(documents[i].document, port, &one);
		catalogue_put(&all, buf_view(&one));
	}
	must(buf_check(&all) == 0);
	return sample_fd(buf_view(&all), F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}
