;;; treadle.el --- The coding agent Treadle in Emacs -*- lexical-binding: t -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools

;;; Commentary:

;; A chat beside the files, and each change in a diff before it is applied.  `M-x treadle' gives a task,
;; `treadle-answer' answers what is asked, `treadle-stop' stops, `treadle-resume' continues a session.

;;; Code:

(require 'json)
(require 'project)
(require 'seq)
(require 'subr-x)

(defgroup treadle nil "The coding agent Treadle." :group 'tools)

(defcustom treadle-command '("treadle" "acp")
  "The program and its flags."
  :type '(repeat string))

(defvar treadle--process nil "The agent; nil where none runs.")
(defvar treadle--rest "" "The beginning of a message whose end has not come.")
(defvar treadle--number 0 "The number of the last request.")
(defvar treadle--waiting (make-hash-table) "What is done with the answer of each request.")
(defvar treadle--session nil "The id of the session.")
(defvar treadle--opened nil "The agent in which the session is open.")
(defvar treadle--entering nil "What is done once the session is open, where it is being opened in an agent.")
(defvar treadle--running nil "Whether a turn runs.")
(defvar treadle--titles (make-hash-table :test #'equal) "The titles of calls.")
(defvar treadle--asked nil "The questions that wait, as (ID . PARAMS), first the one that was put first.")
(defvar treadle--spoke nil "Who wrote last in the chat.")
(defvar treadle--folder nil "Where the session works.")
(defvar-local treadle--read-at nil "The state of a buffer when the agent read it.")

(defconst treadle--not-found -32601)
(defconst treadle--failed -32603)

;;; The chat

(define-derived-mode treadle-mode special-mode "Treadle"
  "What is said, done and asked."
  (visual-line-mode))

(define-key treadle-mode-map (kbd "RET") #'treadle)
(define-key treadle-mode-map (kbd "a") #'treadle-answer)
(define-key treadle-mode-map (kbd "k") #'treadle-stop)

(defun treadle--chat ()
  "Give the buffer of the chat."
  (or (get-buffer "*Treadle*")
      (with-current-buffer (get-buffer-create "*Treadle*")
        (treadle-mode)
        (current-buffer))))

(defun treadle--say (who text)
  "Write TEXT of WHO at the end of the chat; nil is a paragraph of its own."
  (with-current-buffer (treadle--chat)
    (let ((inhibit-read-only t)
          (follows (eobp))              ; whoever looks at it next
          (windows (seq-filter (lambda (one) (treadle--follows-p one who)) (get-buffer-window-list nil nil t))))
      (save-excursion
        (goto-char (point-max))
        (unless (and who (eq who treadle--spoke))
          (unless (bobp) (insert "\n\n"))
          (when (eq who 'you) (insert "## ")))
        (insert text))
      (when follows (goto-char (point-max)))
      (dolist (one windows) (set-window-point one (point-max)))))
  (setq treadle--spoke who))

(defun treadle--follows-p (window who)
  "Tell whether WINDOW follows the chat to what WHO says: not where somebody reads further up."
  (or (eq who 'you)
      (= (window-point window) (point-max))
      (and (not (eq window (selected-window))) (pos-visible-in-window-p (point-max) window))))

(defun treadle--note (text)
  "Write TEXT beside the conversation."
  (treadle--say nil (concat "> " (string-replace "\n" "\n> " (string-trim text)))))

;;; Files: what is typed and not saved is what the agent reads, and what it writes goes through the buffer

(defun treadle--read-file (params)
  "Give the text of an open file of PARAMS."
  (if-let ((buffer (find-buffer-visiting (alist-get 'path params))))
      (with-current-buffer buffer
        (setq treadle--read-at (buffer-chars-modified-tick))
        `((content . ,(save-restriction (widen) (buffer-substring-no-properties (point-min) (point-max))))))
    (list 'error treadle--failed "The file is not open in the editor.")))

(defun treadle--write-file (params)
  "Replace the text of an open file of PARAMS, and save it."
  (let ((buffer (find-buffer-visiting (alist-get 'path params))))
    (cond
     ((not buffer) (list 'error treadle--not-found "The file is not open in the editor."))
     ((with-current-buffer buffer (and treadle--read-at (/= treadle--read-at (buffer-chars-modified-tick))))
      (list 'error treadle--failed "that the user typed in the file in the meantime"))
     (t (with-current-buffer buffer
          (let ((text (alist-get 'content params)))
            (when (eq (coding-system-eol-type buffer-file-coding-system) 1)
              (setq text (string-replace "\r\n" "\n" text)))
            (save-restriction
              (widen)
              (let ((source (generate-new-buffer " *treadle text*")))
                (unwind-protect
                    (progn
                      (with-current-buffer source (insert text))
                      (replace-buffer-contents source))
                  (kill-buffer source))))
            (let ((require-final-newline nil) (save-silently t) (inhibit-message t))
              (condition-case why
                  (progn
                    (unless (verify-visited-file-modtime buffer) (error "The file was changed on the disk, too"))
                    (save-buffer)
                    (setq treadle--read-at (buffer-chars-modified-tick))
                    (make-hash-table))
                (error (list 'error treadle--failed (concat "that the file could not be saved: " (error-message-string why))))))))))))

(defun treadle--look-again ()
  "Read files again that are open, not changed here, and changed on the disk."
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when (and buffer-file-name (not (buffer-modified-p)) (file-exists-p buffer-file-name)
                 (not (verify-visited-file-modtime buffer)))
        (revert-buffer t t t)))))

;;; A change before it is applied

(defun treadle--diff (old new)
  "Give the lines of a unified diff of two texts, OLD and NEW."
  (let ((one (make-temp-file "treadle")) (other (make-temp-file "treadle")))
    (unwind-protect
        (progn
          (write-region old nil one nil 'silent)
          (write-region new nil other nil 'silent)
          (with-temp-buffer
            (call-process "diff" nil t nil "-U" "3" one other)
            (goto-char (point-min))
            (forward-line 2)
            (buffer-substring (point) (point-max))))
      (delete-file one)
      (delete-file other))))

(defun treadle--place (block)
  "Write a changed place, BLOCK, as a part of a diff with its line numbers."
  (let* ((lines (alist-get 'treadle (alist-get '_meta block)))
         (shift (lambda (at name) (number-to-string (+ (string-to-number at) (1- (or (alist-get name lines) 1))))))
         (text (treadle--diff (or (alist-get 'oldText block) "") (alist-get 'newText block)))
         (case-fold-search nil))
    (replace-regexp-in-string
     "^@@ -\\([0-9]+\\)\\(,[0-9]+\\)? \\+\\([0-9]+\\)\\(,[0-9]+\\)? @@"
     (lambda (head)
       (save-match-data
         (string-match "-\\([0-9]+\\)\\(,[0-9]+\\)? \\+\\([0-9]+\\)\\(,[0-9]+\\)?" head)
         (format "@@ -%s%s +%s%s @@" (funcall shift (match-string 1 head) 'oldLine) (or (match-string 2 head) "")
                 (funcall shift (match-string 3 head) 'newLine) (or (match-string 4 head) ""))))
     text t t)))

(defun treadle--show-diff (blocks)
  "Show the changed places, BLOCKS, in a buffer of their own."
  (with-current-buffer (get-buffer-create "*Treadle change*")
    (let ((inhibit-read-only t) (path nil))
      (erase-buffer)
      (dolist (block blocks)
        (unless (equal path (alist-get 'path block))
          (setq path (alist-get 'path block))
          (insert "--- " (if (alist-get 'oldText block) path "/dev/null") "\n+++ " path "\n"))
        (insert (treadle--place block)))
      (diff-mode)
      (setq buffer-read-only t)
      (goto-char (point-min)))
    (display-buffer (current-buffer) '(display-buffer-below-selected (window-height . 0.6)))))

(defun treadle--hide-diff ()
  "Forget the diff."
  (when-let ((buffer (get-buffer "*Treadle change*")))
    (dolist (window (get-buffer-window-list buffer nil t)) (quit-window t window))
    (when (buffer-live-p buffer) (kill-buffer buffer))))

(defun treadle--show-question ()
  "Put the question that waits longest to the user: it is the one that is answered."
  (when-let* ((params (cdar treadle--asked))
              (call (alist-get 'toolCall params)))
    (treadle--put-question params call)))

(defun treadle--put-question (params call)
  "Put the question of PARAMS about CALL to the user."
  (let* ((content (alist-get 'content call))
         (diffs (seq-filter (lambda (one) (equal (alist-get 'type one) "diff")) content))
         (title (concat "**" (alist-get 'title call) "**"))
         (texts (mapcar (lambda (one) (alist-get 'text (alist-get 'content one))) content))
         (texts (mapcar (lambda (one) (string-trim (string-remove-prefix title one))) (delq nil texts)))
         (names (mapcar (lambda (one) (alist-get 'name one)) (alist-get 'options params)))
         (agent (alist-get 'agent (alist-get 'treadle (alist-get '_meta call)))))
    (treadle--say nil (string-join `(,(concat (and agent (concat agent ": ")) title) ,@texts
                                     ,@(mapcar (lambda (one) (concat "- " one)) names)
                                     "(M-x treadle-answer)")
                                   "\n"))
    (display-buffer (treadle--chat))
    (when diffs (treadle--show-diff diffs))
    (message "Treadle asks: %s (M-x treadle-answer)" (alist-get 'title call))))

(defun treadle--over (id)
  "Forget the question ID."
  (let ((first (caar treadle--asked)))
    (setq treadle--asked (seq-remove (lambda (one) (equal (car one) id)) treadle--asked))
    (when (equal id first)
      (treadle--hide-diff)
      (treadle--show-question))))

;;; The agent

(defun treadle--send (message)
  "Send MESSAGE."
  (process-send-string treadle--process (concat (json-serialize `((jsonrpc . "2.0") ,@message)) "\n")))

(defun treadle--ask (method params done)
  "Send the request METHOD with PARAMS; DONE takes its error and its result."
  (setq treadle--number (1+ treadle--number))
  (puthash treadle--number done treadle--waiting)
  (treadle--send `((id . ,treadle--number) (method . ,method) (params . ,params))))

(defun treadle--update (update)
  "Show UPDATE."
  (let ((text (alist-get 'text (alist-get 'content update)))
        (id (alist-get 'toolCallId update))
        (done (assoc-default (alist-get 'status update) '(("completed" . "✓ ") ("failed" . "✗ ")))))
    (pcase (alist-get 'sessionUpdate update)
      ("agent_message_chunk" (treadle--say 'agent text))
      ("agent_thought_chunk" (treadle--note text))
      ("user_message_chunk" (treadle--say 'you (or text "[image]")))
      ((or "tool_call" "tool_call_update")
       (when-let ((title (alist-get 'title update))) (puthash id title treadle--titles))
       (when done
         (treadle--say 'call (concat (and (eq treadle--spoke 'call) "\n") done (gethash id treadle--titles id)))
         (treadle--look-again)))
      ("plan"
       (treadle--note (mapconcat (lambda (one)
                                   (concat (if (equal (alist-get 'status one) "completed") "☑ " "☐ ") (alist-get 'content one)))
                                 (alist-get 'entries update) "\n"))))))

(defun treadle--take (message)
  "Do what MESSAGE of the agent says."
  (let ((id (alist-get 'id message)) (method (alist-get 'method message)) (params (alist-get 'params message)))
    (cond
     ((equal method "session/update")
      (when (equal (alist-get 'sessionId params) treadle--session) (treadle--update (alist-get 'update params))))
     ((equal method "session/request_permission")
      (setq treadle--asked (append treadle--asked (list (cons id params))))
      (unless (cdr treadle--asked) (treadle--show-question)))
     ((equal method "$/cancel_request") (treadle--over (alist-get 'requestId params)))
     ((and method id)
      (let ((answer (pcase method
                      ("fs/read_text_file" (treadle--read-file params))
                      ("fs/write_text_file" (treadle--write-file params))
                      (_ (list 'error treadle--not-found (format "There is no %s." method))))))
        (treadle--send (if (and (consp answer) (eq (car answer) 'error))
                           `((id . ,id) (error . ((code . ,(nth 1 answer)) (message . ,(nth 2 answer)))))
                         `((id . ,id) (result . ,answer))))))
     ((and id (gethash id treadle--waiting))
      (let ((done (gethash id treadle--waiting)))
        (remhash id treadle--waiting)
        (funcall done (alist-get 'error message) (alist-get 'result message)))))))

(defun treadle--filter (process text)
  "Read what PROCESS wrote, TEXT, line by line."
  (when (eq process treadle--process)
    (let ((lines (split-string (concat treadle--rest text) "\n")))
      (setq treadle--rest (car (last lines)))
      (dolist (line (butlast lines))
        (when-let ((message (ignore-errors
                              (json-parse-string line :object-type 'alist :array-type 'list :null-object nil :false-object nil))))
          (treadle--take message))))))

(defun treadle--sentinel (process _)
  "Say that PROCESS has ended; what it asked is over."
  (when (and (eq process treadle--process) (not (process-live-p process)))
    (setq treadle--process nil treadle--running nil treadle--asked nil treadle--entering nil)
    (treadle--hide-diff)
    (let ((said (with-current-buffer "*Treadle errors*" (string-trim (buffer-string)))))
      (treadle--note (format "The agent is not running (%s %d). %s\n`M-x treadle' starts it again."
                             (process-status process) (process-exit-status process) said)))))

(defun treadle--start (ready)
  "Start the agent where it is not running, and call READY."
  (if (process-live-p treadle--process)
      (funcall ready)
    (clrhash treadle--waiting)
    (setq treadle--rest "")
    (with-current-buffer (get-buffer-create "*Treadle errors*") (erase-buffer))
    (let ((errors (make-pipe-process :name "treadle errors" :buffer "*Treadle errors*" :noquery t :sentinel #'ignore)))
      (setq treadle--process
            (make-process :name "treadle" :command treadle-command :connection-type 'pipe :coding 'utf-8-unix :noquery t
                          :filter #'treadle--filter :sentinel #'treadle--sentinel :stderr errors)))
    (treadle--ask "initialize"
                  `((protocolVersion . 1) (clientInfo . ((name . "treadle.el") (version . "0.1.0")))
                    (clientCapabilities . ((fs . ((readTextFile . t) (writeTextFile . t))))))
                  (lambda (error _) (if error (treadle--note (alist-get 'message error)) (funcall ready))))))

(defun treadle--root ()
  "Give the folder to work in: the project's, else that of the buffer."
  (let ((project (project-current)))
    (directory-file-name (expand-file-name (if project (project-root project) default-directory)))))

(defun treadle--enter (id ready)
  "Open the session ID, or a new one for nil, and call READY."
  (setq treadle--session id treadle--folder (or (and id treadle--folder) (treadle--root)) treadle--entering (list ready))
  (when id
    (with-current-buffer (treadle--chat) (let ((inhibit-read-only t)) (erase-buffer)))
    (setq treadle--spoke nil))
  (treadle--ask (if id "session/load" "session/new")
                `((cwd . ,treadle--folder) (mcpServers . []) ,@(and id `((sessionId . ,id))))
                (lambda (error opened)
                  (let ((waits (reverse treadle--entering)))
                    (setq treadle--entering nil)
                    (if error
                        (treadle--note (alist-get 'message error))
                      (setq treadle--session (or id (alist-get 'sessionId opened)) treadle--opened treadle--process)
                      (mapc #'funcall waits))))))

(defun treadle--in-session (ready)
  "Call READY in the session, opened where it is not."
  (treadle--start (lambda ()
                    (cond (treadle--entering (push ready treadle--entering))
                          ((and treadle--session (eq treadle--opened treadle--process)) (funcall ready))
                          (t (treadle--enter treadle--session ready))))))

;;;###autoload
(defun treadle (text &optional region)
  "Give Treadle a task, TEXT, with the lines of the REGION where there is one."
  (interactive (list (read-string "Task: ")
                     (and (use-region-p)
                          (cons (line-number-at-pos (region-beginning)) (line-number-at-pos (1- (region-end)))))))
  (let ((prompt (vconcat `(((type . "text") (text . ,text)))
                         (and region (list (treadle--lines (car region) (cdr region)))))))
    (display-buffer (treadle--chat))
    (treadle--in-session
     (lambda ()
       (treadle--say nil "")
       (treadle--say 'you text)
       (let ((params `((sessionId . ,treadle--session) (prompt . ,prompt))))
         (if treadle--running           ; it comes in at the model's next step
             (treadle--ask "_session/steering" params (lambda (error _) (when error (treadle--note (alist-get 'message error)))))
           (setq treadle--running t)
           (treadle--ask "session/prompt" params
                         (lambda (error answer)
                           (setq treadle--running nil)
                           (let ((reason (alist-get 'stopReason answer)))
                             (treadle--note (cond (error (alist-get 'message error))
                                                  ((equal reason "end_turn") "Done.")
                                                  (t (format "Done: %s." reason)))))))))))))

(defun treadle--lines (first last)
  "Give lines FIRST to LAST of this buffer, saved or not, for a message."
  (let ((text (save-excursion
                (goto-char (point-min))
                (forward-line (1- first))
                (let ((start (point)))
                  (forward-line (- last first))
                  (concat (buffer-substring-no-properties start (line-end-position)) "\n")))))
    `((type . "resource")
      (resource . ((uri . ,(format "file://%s#L%d-L%d" (or buffer-file-name (buffer-name)) first last))
                   (mimeType . "text/plain") (text . ,text))))))

(defun treadle-answer (id name comment)
  "Answer the question ID with the option NAME and a COMMENT."
  (interactive
   (if treadle--asked
       (let ((names (mapcar (lambda (one) (alist-get 'name one)) (alist-get 'options (cdar treadle--asked)))))
         (list (caar treadle--asked)
               (completing-read (concat (alist-get 'title (alist-get 'toolCall (cdar treadle--asked))) " ") names nil t)
               (read-string "Comment (optional): ")))
     (user-error "Nothing is asked")))
  (let* ((params (or (alist-get id treadle--asked nil nil #'equal) (user-error "This question is over")))
         (option (seq-find (lambda (one) (equal (alist-get 'name one) name)) (alist-get 'options params))))
    (treadle--say nil (concat "→ " name (and (not (string-empty-p comment)) (concat ": " comment))))
    (treadle--over id)
    (treadle--send `((id . ,id)
                     (result . ((outcome . ((outcome . "selected") (optionId . ,(alist-get 'optionId option))
                                            ,@(unless (string-empty-p comment)
                                                `((_meta . ((treadle . ((comment . ,comment)))))))))))))))

(defun treadle-stop ()
  "Stop what Treadle does; what it asked is over."
  (interactive)
  (when (process-live-p treadle--process)
    (pcase-dolist (`(,id . ,_) (prog1 treadle--asked (setq treadle--asked nil) (treadle--hide-diff)))
      (treadle--send `((id . ,id) (result . ((outcome . ((outcome . "cancelled"))))))))
    (treadle--send `((method . "session/cancel") (params . ((sessionId . ,treadle--session)))))))

(defun treadle-new ()
  "Begin a new session, in this folder."
  (interactive)
  (setq treadle--session nil treadle--folder nil)
  (treadle--in-session (lambda () (treadle--note "A new session."))))

(defun treadle-mode-set (mode)
  "Change to the MODE: plan, ask, edits, auto or full."
  (interactive (list (completing-read "Mode: " '("plan" "ask" "edits" "auto" "full") nil t)))
  (treadle--in-session
   (lambda ()
     (treadle--ask "session/set_mode" `((sessionId . ,treadle--session) (modeId . ,mode))
                   (lambda (error _) (treadle--note (if error (alist-get 'message error) (format "Mode %s." mode))))))))

(defun treadle-resume ()
  "Continue a session of this folder."
  (interactive)
  (let ((folder (treadle--root)))
    (treadle--start
     (lambda ()
       (treadle--ask
        "session/list" `((cwd . ,folder))
        (lambda (error found)
          (if error
              (treadle--note (alist-get 'message error))
            (let ((rows (mapcar (lambda (one)
                                  (cons (format "%s (%s)" (alist-get 'title one) (alist-get 'sessionId one)) (alist-get 'sessionId one)))
                                (alist-get 'sessions found))))
              ;; A filter must not read from the user.
              (run-at-time 0 nil
                           (lambda ()
                             (let ((id (cdr (assoc (completing-read "Continue: " rows nil t) rows))))
                               (setq treadle--folder folder)
                               (display-buffer (treadle--chat))
                               (treadle--enter id #'ignore))))))))))))

(provide 'treadle)
;;; treadle.el ends here
